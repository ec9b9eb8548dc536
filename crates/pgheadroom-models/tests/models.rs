//! The tests of the models as one program: the twin's generic code is compiled once for all.

mod decay;
mod engines;
mod storage;
mod undo;
