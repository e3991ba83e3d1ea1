//! What a story is: a name, a sentence, a setting and a function; and the three ways to run it.

use std::fmt;
use std::pin::Pin;

use anyhow::Result;

use crate::scene::Scene;
use crate::setting::Setting;

/// What a story's function gives back. Every worker has a thread of its own, so it need not be `Send`.
pub(crate) type Played<'a> = Pin<Box<dyn Future<Output = Result<()>> + 'a>>;

/// One story.
pub(crate) struct Story {
    /// Its name on the command line.
    pub(crate) name: &'static str,
    /// What it is about, in a sentence.
    pub(crate) does: &'static str,
    /// What it needs otherwise than usual.
    setting: fn(&mut Setting),
    /// The ways it is run, and why not the others.
    ways: (&'static [Variant], &'static str),
    /// Why it can only be played on a real control plane.
    real: Option<&'static str>,
    /// Why it needs the scaled clock.
    scaled: Option<&'static str>,
    /// What happens.
    pub(crate) play: for<'a> fn(&'a Scene) -> Played<'a>,
}

impl Story {
    /// A story in the usual setting.
    pub(crate) const fn new(
        name: &'static str,
        does: &'static str,
        play: for<'a> fn(&'a Scene) -> Played<'a>,
    ) -> Story {
        Story { name, does, setting: |_| {}, ways: (&Variant::ALL, ""), real: None, scaled: None, play }
    }

    /// The setting it is played in.
    pub(crate) fn setting(&self) -> Setting {
        let mut setting = Setting::default();
        setting.is_scaled = self.scaled.is_some();
        (self.setting)(&mut setting);
        setting
    }

    /// The same story in these ways only; the others make no sense, because of this.
    pub(crate) const fn only(mut self, ways: &'static [Variant], why: &'static str) -> Story {
        self.ways = (ways, why);
        self
    }

    /// The ways it is run.
    pub(crate) const fn variants(&self) -> &'static [Variant] {
        self.ways.0
    }

    /// Why it is not run in the others.
    pub(crate) const fn why_not_all(&self) -> &'static str {
        self.ways.1
    }

    /// The same story, but not on the playground's control plane, because of this.
    pub(crate) const fn on_a_real_plane(mut self, why: &'static str) -> Story {
        self.real = Some(why);
        self
    }

    /// Why it is not played on the playground's control plane.
    pub(crate) const fn why_not_on_the_playground(&self) -> Option<&'static str> {
        self.real
    }

    /// The same story with the lab build, whose clock goes as fast as the emulator's, because of this: no key of the
    /// configuration makes it fast enough.
    pub(crate) const fn scaled(mut self, why: &'static str) -> Story {
        self.scaled = Some(why);
        self
    }

    /// Why it needs the scaled clock.
    pub(crate) const fn why_scaled(&self) -> Option<&'static str> {
        self.scaled
    }

    /// The same story in another setting.
    pub(crate) const fn with(mut self, setting: fn(&mut Setting)) -> Story {
        self.setting = setting;
        self
    }
}

/// A way to run a story.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, clap::ValueEnum)]
pub(crate) enum Variant {
    /// As it is told.
    Plain,
    /// The controller is killed (`kill -9`) and started again at random moments of the seed.
    Killed,
    /// The controller is down while things change.
    Down,
}

impl Variant {
    /// All three.
    pub(crate) const ALL: [Variant; 3] = [Variant::Plain, Variant::Killed, Variant::Down];

    /// As it stands on the command line.
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Variant::Plain => "plain",
            Variant::Killed => "killed",
            Variant::Down => "down",
        }
    }
}

impl fmt::Display for Variant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.word())
    }
}
