//! node

/// Placeholder until the agent is merged.
pub fn stand_in() -> Option<std::process::ExitCode> {
    None
}
/// Placeholder until the agent is merged.
pub fn install(_folder: &std::path::Path) -> Result<(), String> {
    Err("not merged".to_owned())
}
/// Placeholder until the agent is merged.
pub async fn serve(_namespace: &str) -> Result<(), String> {
    Err("not merged".to_owned())
}
