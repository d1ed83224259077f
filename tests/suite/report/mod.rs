//! `report`: the history of simulated runs, and the text, the JSON and the page that are made of it.

mod confirmation;
mod runs;
mod views;
