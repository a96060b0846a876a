//! Gives the binary the commit it was built from, for `ficus --version`; "unknown" outside a clone.

use std::process::Command;

fn main() {
    let run = |arguments: &[&str]| {
        let output = Command::new("git").args(arguments).output().ok()?;
        let text = String::from_utf8(output.stdout).ok()?;
        output.status.success().then(|| text.trim().to_owned()).filter(|text| !text.is_empty())
    };
    let commit = run(&["rev-parse", "--short=12", "HEAD"]).unwrap_or_else(|| "unknown".into());
    println!("cargo:rustc-env=FICUS_COMMIT={commit}");
    // The commit changes when the branch's reference does, and when another branch is checked out.
    for path in ["HEAD", "logs/HEAD"] {
        if let Some(path) = run(&["rev-parse", "--git-path", path])
            && std::path::Path::new(&path).exists()
        {
            println!("cargo:rerun-if-changed={path}");
        }
    }
    println!("cargo:rerun-if-changed=build.rs");
}
