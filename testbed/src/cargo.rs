//! Runs cargo from programs that cargo itself may have started.

use std::{env, process::Command};

/// Prefixes of the variables that `cargo run` sets for the package of the program.
const OF_THE_PACKAGE: [&str; 2] = ["CARGO_PKG_", "CARGO_MANIFEST_"];

/// cargo without the variables of our own package. Build scripts of dependencies watch some of these variables, so a
/// changed value would cause minutes of compilation.
pub fn cargo() -> Command {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    let names = env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    for name in names.filter(|name| OF_THE_PACKAGE.iter().any(|prefix| name.starts_with(prefix))) {
        command.env_remove(name);
    }
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cargo_does_not_inherit_the_variables_of_the_package() {
        // cargo sets these for a test, too.
        assert!(env::var_os("CARGO_PKG_NAME").is_some());
        let command = cargo();
        let removed = |name: &str| command.get_envs().any(|variable| variable == (name.as_ref(), None));
        assert!(removed("CARGO_PKG_NAME") && removed("CARGO_MANIFEST_DIR"));
        assert!(!removed("PATH"));
    }
}
