//! Each folder of `src/` is a room. In no room two modules import each other, also not by way of others, and
//! a `mod.rs` only declares and re-exports.
//!
//! Imports are read from the sources: `use` lines and paths in code, without `#[cfg(test)]` parts. An import
//! through a re-export is an import of the file that defines the name.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use proc_macro2::{Delimiter, Spacing, TokenStream, TokenTree};

use crate::purity::sources;

/// Path of a module, for example `node::legacy::pieces`; the crate is the empty path.
type Name = Vec<String>;

/// One `use`, or one path in code: the segments, and the name under which it is known.
struct Import {
    path: Name,
    alias: String,
}

#[derive(Default)]
struct Module {
    imports: Vec<Import>,
    /// Paths in code, in addition to `use`.
    paths: Vec<Name>,
    /// Names of functions, types, constants and macros that are defined here.
    defined: BTreeSet<String>,
    children: BTreeSet<String>,
    has_logic: bool,
}

struct Sources(BTreeMap<Name, Module>);

/// Splits a source into words, `::` and single signs, without comments and texts.
fn tokens(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    flatten(text.parse().unwrap(), &mut found);
    found
}

fn flatten(stream: TokenStream, found: &mut Vec<String>) {
    let mut trees = stream.into_iter().peekable();
    let is_colon = |tree: &TokenTree| matches!(tree, TokenTree::Punct(sign) if sign.as_char() == ':');
    while let Some(tree) = trees.next() {
        match tree {
            TokenTree::Group(group) => {
                let (open, close) = match group.delimiter() {
                    Delimiter::Parenthesis => ("(", ")"),
                    Delimiter::Brace => ("{", "}"),
                    Delimiter::Bracket => ("[", "]"),
                    Delimiter::None => ("", ""),
                };
                found.push(open.to_owned());
                flatten(group.stream(), found);
                found.push(close.to_owned());
            }
            TokenTree::Ident(word) => found.push(word.to_string()),
            TokenTree::Punct(sign)
                if sign.as_char() == ':'
                    && sign.spacing() == Spacing::Joint
                    && trees.next_if(is_colon).is_some() =>
            {
                found.push("::".to_owned());
            }
            TokenTree::Punct(sign) => found.push(sign.to_string()),
            TokenTree::Literal(_) => {}
        }
    }
}

/// Returns the place after the item that begins at `from`: its `;`, or the end of its braces.
fn after_item(tokens: &[String], from: usize) -> usize {
    let is_use = tokens[from..].iter().take(5).any(|token| token == "use");
    let mut depth = 0_u32;
    for (place, token) in tokens.iter().enumerate().skip(from) {
        match token.as_str() {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" => depth -= 1,
            "}" => {
                depth -= 1;
                if depth == 0 && !is_use {
                    return place + 1;
                }
            }
            ";" if depth == 0 => return place + 1,
            _ => {}
        }
    }
    tokens.len()
}

fn without_tests(tokens: &[String]) -> Vec<String> {
    let (mut kept, mut place) = (Vec::new(), 0);
    let is_test = |place: usize| {
        let marks = ["#", "[", "cfg", "(", "test", ")", "]"];
        tokens[place..].len() > marks.len() && tokens[place..].iter().zip(marks).all(|(a, b)| a == b)
    };
    while place < tokens.len() {
        if !is_test(place) {
            kept.push(tokens[place].clone());
            place += 1;
            continue;
        }
        place += 7;
        while tokens.get(place).is_some_and(|token| token == "#") {
            place += tokens[place..].iter().position(|token| token == "]").unwrap() + 1;
        }
        place = after_item(tokens, place);
    }
    kept
}

/// Expands the tree of a `use`: one import for each name in it.
fn expand(tree: &[String], before: &[String], found: &mut Vec<Import>) {
    let mut path = before.to_vec();
    let mut place = 0;
    while let Some(token) = tree.get(place) {
        match token.as_str() {
            "::" => {}
            "{" => {
                let mut depth = 0_u32;
                let mut begin = place + 1;
                for (end, inner) in tree.iter().enumerate().skip(place) {
                    match inner.as_str() {
                        "{" => depth += 1,
                        "}" => depth -= 1,
                        _ => {}
                    }
                    if depth == 0 || (depth == 1 && inner == ",") {
                        expand(&tree[begin..end], &path, found);
                        begin = end + 1;
                    }
                    if depth == 0 {
                        return;
                    }
                }
            }
            "as" => {
                let alias = tree[place + 1].clone();
                found.push(Import { path, alias });
                return;
            }
            "self" if !path.is_empty() => {}
            word => path.push(word.to_owned()),
        }
        place += 1;
    }
    if path.len() > before.len() || tree.iter().any(|token| token == "self") {
        let alias = path.last().unwrap().clone();
        found.push(Import { path, alias });
    }
}

const DEFINES: [&str; 7] = ["fn", "struct", "enum", "trait", "const", "static", "type"];

fn is_name(token: &str) -> bool {
    token.starts_with(|sign: char| sign.is_alphabetic() || sign == '_')
}

fn module(text: &str) -> Module {
    let tokens = without_tests(&tokens(text));
    let token = |place: usize| tokens.get(place).map_or("", String::as_str);
    let mut module = Module::default();
    let (mut place, mut depth) = (0, 0_u32);
    while place < tokens.len() {
        match token(place) {
            // `use<>` in a type captures lifetimes.
            "use" if token(place + 1) != "<" => {
                let end = after_item(&tokens, place) - 1;
                expand(&tokens[place + 1..end], &[], &mut module.imports);
                place = end;
            }
            "mod" if token(place + 2) == ";" => {
                module.children.insert(token(place + 1).to_owned());
                place += 2;
            }
            "{" => depth += 1,
            "}" => depth -= 1,
            word => {
                module.has_logic |= matches!(word, "fn" | "impl" | "match");
                if depth == 0 && DEFINES.contains(&word) {
                    module.defined.insert(token(place + 1).to_owned());
                }
                if depth == 0 && word == "macro_rules" {
                    module.defined.insert(token(place + 2).to_owned());
                }
                if is_name(word) && token(place + 1) == "::" && token(place.wrapping_sub(1)) != "::" {
                    let mut path = vec![word.to_owned()];
                    while token(place + 1) == "::" && is_name(token(place + 2)) {
                        path.push(token(place + 2).to_owned());
                        place += 2;
                    }
                    module.paths.push(path);
                }
            }
        }
        place += 1;
    }
    module
}

impl Sources {
    /// Reads the modules that are compiled without tests, from the root on.
    fn read(files: &BTreeMap<String, String>) -> Self {
        let mut modules = BTreeMap::new();
        let mut open = vec![(Name::new(), "lib.rs".to_owned())];
        while let Some((name, file)) = open.pop() {
            let found = module(&files[&file]);
            for child in &found.children {
                let path = name.iter().chain([child]).cloned().collect::<Name>();
                let files = [format!("{}.rs", path.join("/")), format!("{}/mod.rs", path.join("/"))]
                    .into_iter()
                    .filter(|file| files.contains_key(file));
                open.extend(files.map(|file| (path.clone(), file)));
            }
            modules.insert(name, found);
        }
        Self(modules)
    }

    /// Returns the module that defines what `path`, read in `module`, names.
    fn definition(&self, module: &Name, path: &[String], depth: u32) -> Option<Name> {
        let (first, rest) = path.split_first()?;
        let here = self.0.get(module)?;
        match first.as_str() {
            "crate" => self.walk(Name::new(), rest, depth),
            "self" => self.walk(module.clone(), rest, depth),
            "super" => {
                let mut above = module.clone();
                above.pop()?;
                match rest.first().map(String::as_str) {
                    Some("super") => self.definition(&above, rest, depth),
                    _ => self.walk(above, rest, depth),
                }
            }
            _ if here.children.contains(first) => self.walk(module.clone(), path, depth),
            _ => {
                let import = here.imports.iter().find(|import| import.alias == *first)?;
                if depth == 0 || import.path.first() == Some(first) {
                    return None;
                }
                let whole: Name = import.path.iter().chain(rest).cloned().collect();
                self.definition(module, &whole, depth - 1)
            }
        }
    }

    fn walk(&self, mut module: Name, path: &[String], depth: u32) -> Option<Name> {
        for (place, segment) in path.iter().enumerate() {
            let here = self.0.get(&module)?;
            if here.children.contains(segment) {
                module.push(segment.clone());
                continue;
            }
            let rest = &path[place..];
            let by_glob = || {
                let globs = here.imports.iter().filter(|import| import.alias == "*");
                globs.into_iter().find_map(|glob| {
                    let folder = self.definition(&module, &glob.path[..glob.path.len() - 1], depth)?;
                    self.0.get(&folder)?.defined.contains(segment).then_some(folder)
                })
            };
            return if here.defined.contains(segment) {
                Some(module)
            } else {
                self.definition(&module, rest, depth).or_else(by_glob).or(Some(module))
            };
        }
        Some(module)
    }

    /// Returns all imports between files.
    fn imports(&self) -> BTreeSet<(Name, Name)> {
        let mut found = BTreeSet::new();
        for (name, module) in &self.0 {
            let only_declares = module.defined.is_empty() && !module.has_logic;
            let paths = module.imports.iter().map(|import| &import.path).chain(&module.paths);
            for path in paths.filter(|_| !only_declares || module.children.is_empty()) {
                if let Some(other) = self.definition(name, path, 8).filter(|other| other != name) {
                    found.insert((name.clone(), other));
                }
            }
        }
        found
    }

    /// Returns the circles in each room, once between its children and once between all its files.
    fn circles(&self) -> BTreeSet<String> {
        let imports = self.imports();
        let mut found = BTreeSet::new();
        for room in self.0.iter().filter(|(_, module)| !module.children.is_empty()).map(|(name, _)| name) {
            let inside = imports.iter().filter(|(a, b)| a.starts_with(room) && b.starts_with(room));
            let child = |name: &Name| name.iter().take(room.len() + 1).cloned().collect::<Name>();
            found.extend(circles(&inside.clone().map(|(a, b)| (child(a), child(b))).collect()));
            if room.len() == 1 {
                found.extend(circles(&inside.cloned().collect()));
            }
        }
        found
    }
}

/// Returns the groups of modules that reach each other.
fn circles(imports: &BTreeSet<(Name, Name)>) -> BTreeSet<String> {
    let mut next: BTreeMap<&Name, BTreeSet<&Name>> = BTreeMap::new();
    for (from, to) in imports.iter().filter(|(from, to)| from != to) {
        next.entry(from).or_default().insert(to);
    }
    let reached = |from: &Name| {
        let (mut seen, mut open) = (BTreeSet::new(), vec![from]);
        while let Some(name) = open.pop() {
            open.extend(next.get(name).into_iter().flatten().filter(|to| seen.insert((**to).clone())));
        }
        seen
    };
    let reach: BTreeMap<&Name, BTreeSet<Name>> = next.keys().map(|name| (*name, reached(name))).collect();
    let circle = |from: &Name| {
        let back = |other: &&Name| reach.get(*other).is_some_and(|seen| seen.contains(from));
        reach[from].iter().filter(back).map(|name| name.join("::")).collect::<Vec<_>>().join(", ")
    };
    reach.keys().map(|name| circle(name)).filter(|circle| !circle.is_empty()).collect()
}

fn of_src() -> BTreeMap<String, String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let file = |path: &Path| path.strip_prefix(&root).unwrap().display().to_string();
    let mut files: BTreeMap<String, String> =
        sources(&root).iter().map(|path| (file(path), fs::read_to_string(path).unwrap())).collect();
    // The core is a crate of its own, and a room can only import what is below it: one tree shows both.
    let core = files.remove("core.rs").unwrap();
    files.get_mut("lib.rs").unwrap().push_str(&core);
    files
}

#[test]
fn rooms_have_no_import_circle() {
    let sources = Sources::read(&of_src());
    assert!(sources.0.len() > 150, "the sources moved: {}", sources.0.len());
    assert!(sources.imports().len() > 500, "imports are no longer found: {}", sources.imports().len());
    let found = sources.circles();
    assert!(found.is_empty(), "{found:#?}");
}

#[test]
fn rooms_have_no_logic_in_their_mod_file() {
    let sources = Sources::read(&of_src());
    let has_logic = |module: &Module| module.has_logic && !module.children.is_empty();
    let named = sources.0.iter().filter(|(name, module)| !name.is_empty() && has_logic(module));
    let found: Vec<_> = named.map(|(name, _)| name.join("::")).collect();
    assert!(found.is_empty(), "logic in the file of a room: {found:#?}");
}

#[test]
fn source_files_are_all_compiled() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let files = ["src", "tests/suite", "tests/explore"].map(|folder| sources(&root.join(folder))).concat();
    let texts: Vec<_> = files.iter().map(|file| (file, fs::read_to_string(file).unwrap())).collect();
    let is_declared = |file: &Path| {
        let (folder, stem) = match file.file_stem().unwrap().to_str().unwrap() {
            "main" | "lib" | "core" => return true,
            "mod" => (file.parent().unwrap().parent().unwrap(), file.parent().unwrap().file_name().unwrap()),
            _ => (file.parent().unwrap(), file.file_stem().unwrap()),
        };
        let stem = stem.to_str().unwrap();
        let (line, path) = (format!("mod {stem};"), format!("#[path = \"{stem}.rs\"]"));
        texts.iter().any(|(other, text)| {
            (other.parent() == Some(folder) || other.with_extension("") == folder)
                && (text.contains(&line) || text.contains(&path))
        })
    };
    let lost: Vec<_> = files.iter().filter(|file| !is_declared(file)).collect();
    assert!(lost.is_empty(), "no `mod` line declares: {lost:#?}");
}

#[test]
fn rooms_test_finds_circles_through_re_exports_and_not_in_tests() {
    let circles = |a: &str, b: &str| {
        let texts = [
            ("lib.rs", "mod room;"),
            ("room/mod.rs", "mod a; mod b; pub(crate) use a::{A, Far as Near}; pub use b::B;"),
            ("room/a.rs", a),
            ("room/b.rs", b),
        ];
        let files = texts.map(|(file, text)| (file.to_owned(), text.to_owned()));
        Sources::read(&files.into()).circles().into_iter().collect::<Vec<_>>()
    };
    let (a, b) = ("use super::B; pub struct A(B);", "pub struct B; fn f() { crate::room::A::new() }");
    assert_eq!(circles(a, b), ["room::a, room::b"]);
    assert_eq!(circles(a, "pub struct B; // super::A\nconst T: &str = \"super::A\";"), Vec::<String>::new());
    let in_test = "pub struct B; #[cfg(test)] mod tests { use super::super::A; }";
    assert_eq!(circles(a, in_test), Vec::<String>::new());
    assert_eq!(circles(a, "pub struct B; fn f<'a>() { use super::Near; }"), ["room::a, room::b"]);
}
