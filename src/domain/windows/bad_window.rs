//! Error of a text that is not a window.

/// Error of a text that is not a window.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadWindow {
    /// The text is not `HH:MM-HH:MM`, with or without weekdays.
    #[error(
        "{0:?} is not a window. Write HH:MM-HH:MM, with weekdays before it if the window is not daily: 22:00-05:00, \
         Mon-Fri 22:00-05:00, Sat,Sun 00:00-24:00"
    )]
    Form(String),
    /// A word before the times is not a weekday.
    #[error(
        "{0:?} is not a weekday. Write Mon, Tue, Wed, Thu, Fri, Sat or Sun: Mon-Fri 22:00-05:00, Sat,Sun 00:00-24:00"
    )]
    Weekday(String),
    /// Weekdays without times.
    #[error("{0} has no times. For whole days, write {0} 00:00-24:00")]
    NoTimes(String),
    /// The window ends when it begins, which is ambiguous: it could be a whole day or nothing.
    #[error("the window {0} ends when it begins. For a whole day, write 00:00-24:00")]
    Empty(String),
}
