//! What people see: status, explanations and findings in one JSON shape.
