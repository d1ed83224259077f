//! Layout of output: its width, wrapped sentences, tables. No name and no command is cut.
//!
//! | module | content |
//! | --- | --- |
//! | `width` | columns of the output |
//! | `wrap` | sentences, wrapped between words and around commands |
//! | `rows` | tables |

mod rows;
mod width;
mod wrap;

pub use rows::Rows;
pub use width::Width;
pub use wrap::{fitted, wrapped};
