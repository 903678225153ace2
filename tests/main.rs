//! All tests of the program as a whole, in one binary, so that tests that wait run beside tests that compute, and the program is linked once.

mod browser;
mod it;
mod receivers;
mod service;
mod tidy;
