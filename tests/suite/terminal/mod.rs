//! What a person sees on a terminal: help, explanations, tables at several widths, the end of the output.

mod explain;
mod golden;
mod help;
mod output;
