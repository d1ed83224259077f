//! `version`, `completion` and `man`: what the program says of itself.

use std::path::Path;

use clap::CommandFactory;
use clap_complete::Shell;

use crate::cli::{Cli, completing_words, completion_script};
use crate::commands::print::print;
use crate::exit::{Exit, failed};

/// Prints the version.
pub(super) fn version() -> Exit {
    printed(concat!("osd-migrate ", env!("CARGO_PKG_VERSION")))
}

/// Prints the completion script of a shell.
pub(super) fn completion(shell: Shell) -> Exit {
    printed(completion_script(shell).trim_end())
}

/// Prints the words that complete a command line.
pub(super) fn complete(words: &[String]) -> Exit {
    printed(&completing_words(words))
}

/// Writes one man page for each command.
pub(super) fn man(folder: &Path) -> Exit {
    match std::fs::create_dir_all(folder).and_then(|()| clap_mangen::generate_to(Cli::command(), folder)) {
        Ok(()) => Exit::Finished,
        Err(error) => failed(
            &format!("the man pages could not be written into {}: {error}", folder.display()),
            Exit::TryAgain,
        ),
    }
}

fn printed(text: &str) -> Exit {
    print(text).map_or_else(|exit| exit, |()| Exit::Finished)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_command_has_a_man_page() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(man(folder.path()), Exit::Finished);
        let read = |name: &str| std::fs::read_to_string(folder.path().join(name)).unwrap();
        assert!(read("osd-migrate.1").contains("osd-migrate"));
        assert!(read("osd-migrate-run.1").contains("failure"));
        for command in Cli::command().get_subcommands().filter(|command| !command.is_hide_set()) {
            read(&format!("osd-migrate-{}.1", command.get_name()));
        }
        let file = folder.path().join("osd-migrate.1");
        assert_eq!(man(&file), Exit::TryAgain, "a file is no folder");
    }
}
