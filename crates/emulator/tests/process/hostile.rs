//! Whatever comes in: the emulator survives, answers, and changes nothing that it should not.
