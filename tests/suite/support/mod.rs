//! Code that the tests share.

pub(crate) mod build;

/// Asserts that a value has a shape, and prints the value if it has not.
macro_rules! check {
    ($value:expr, $pattern:pat $(if $guard:expr)? $(,)?) => {{
        let value = $value;
        assert!(
            matches!(&value, $pattern $(if $guard)?),
            "expected {}\n     got {value:#?}",
            stringify!($pattern $(if $guard)?)
        );
    }};
}
pub(crate) use check;
