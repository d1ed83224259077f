//! `explain`: the entry of a code, from the pages in this program.

use crate::cli::{Cli, near};
use crate::commands::print::print;
use crate::commands::terminal::width;
use crate::domain::commands::Names;
use crate::exit::{Exit, failed};
use crate::explain::{Pages, entry_text, list_text, section_text};
use crate::k8s::Access;

/// Prints the entry of a code, or the list of all codes.
pub(super) fn explain(cli: &Cli, code: Option<&str>) -> Exit {
    let pages = Pages::embedded();
    let Some(code) = code else { return printed(&list_text(&pages, width())) };
    let entries = pages.find(code);
    if entries.is_empty() {
        if let Some(text) = section_text(&pages, code, names(cli).as_ref(), width()) {
            return printed(&text);
        }
        return failed(&unknown(&pages, code), Exit::WrongUsage);
    }
    printed(&entry_text(&pages, &entries, names(cli).as_ref(), width()))
}

fn printed(text: &str) -> Exit {
    print(text).map_or_else(|exit| exit, |()| Exit::Finished)
}

fn unknown(pages: &Pages, code: &str) -> String {
    let tips = near(code, pages.entries().iter().map(|entry| entry.code.as_str()));
    let tips = if tips.is_empty() { String::new() } else { format!(" Near: {}.", tips.join(", ")) };
    format!("no message has the code {code:?}.{tips} To list all codes: osd-migrate explain")
}

/// Returns the names that options and the environment give, without a request.
fn names(cli: &Cli) -> Option<Names> {
    let access = Access { kubeconfig: cli.kubeconfig.clone(), context: cli.context.clone() };
    let namespace = cli.namespace.clone().filter(|namespace| !namespace.is_empty())?;
    let (cluster, operator_namespace) = (cli.cluster.clone(), cli.operator_namespace.clone());
    Some(Names { namespace, cluster, operator_namespace, access: access.options() })
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[test]
    fn unknown_code_is_wrong_usage_with_near_codes() {
        let pages = Pages::embedded();
        assert_eq!(
            unknown(&pages, "paussed"),
            "no message has the code \"paussed\". Near: paused. To list all codes: osd-migrate explain"
        );
        let cli = Cli::try_parse_from(["osd-migrate", "explain"]).unwrap();
        assert_eq!(explain(&cli, Some("paussed")), Exit::WrongUsage);
        assert_eq!(explain(&cli, Some("quarantined")), Exit::Finished);
    }

    #[test]
    fn names_come_from_the_options() {
        let typed = ["osd-migrate", "-n", "ceph-a", "--context", "my lab", "--cluster", "store", "explain"];
        let names = names(&Cli::try_parse_from(typed).unwrap()).unwrap();
        assert_eq!((names.namespace.as_str(), names.cluster.as_deref()), ("ceph-a", Some("store")));
        assert_eq!(names.access, "--context 'my lab'");
    }
}
