//! All shell scripts of the repository pass shellcheck, where it is installed.
//!
//! This file does not know what the scripts do.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// All shell scripts of the repository, by their first line.
fn shell_scripts(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            if !["target", "dist", ".git"]
                .iter()
                .any(|name| path.ends_with(name))
            {
                shell_scripts(&path, found);
            }
        } else if fs::read(&path).is_ok_and(|bytes| {
            bytes.starts_with(b"#!/bin/sh") || bytes.starts_with(b"#!/usr/bin/env sh")
        }) {
            found.push(path);
        }
    }
}

#[test]
fn shellcheck_is_content_with_all_scripts() {
    let mut scripts = Vec::new();
    shell_scripts(Path::new(env!("CARGO_MANIFEST_DIR")), &mut scripts);
    let ours = Path::new(env!("CARGO_MANIFEST_DIR")).join("contrib/escalate.sh");
    assert!(scripts.contains(&ours));
    let installed = |folder: PathBuf| Some(folder.join("shellcheck")).filter(|file| file.is_file());
    let path = std::env::var_os("PATH").unwrap_or_default();
    let Some(shellcheck) = std::env::split_paths(&path).find_map(installed) else {
        eprintln!(
            "SKIPPED: shellcheck not installed, {} scripts are not checked",
            scripts.len()
        );
        return;
    };
    let output = Command::new(shellcheck)
        .arg("--severity=warning")
        .args(&scripts)
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stdout)
    );
}
