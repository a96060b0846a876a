//! The line editor of the interactive shell: history, completion, and lines that go on while brackets are open.

use std::path::PathBuf;

use rustyline::completion::{Completer, Pair};
use rustyline::error::ReadlineError;
use rustyline::history::FileHistory;
use rustyline::validate::{ValidationContext, ValidationResult, Validator};
use rustyline::{Config, Context, Editor, Helper, Highlighter, Hinter};

use super::statement::{Completeness, completeness};
use super::words::completions;

/// Entries kept in the history file.
const HISTORY_MAX: usize = 2000;

/// What the user did.
pub enum Input {
    /// Entered a query or a command.
    Line(String),
    /// Pressed Ctrl-C: what was typed is thrown away.
    Interrupted,
    /// Pressed Ctrl-D.
    End,
}

/// Reads lines from a terminal.
pub struct LineEditor {
    editor: Editor<ShellHelper, FileHistory>,
    history: Option<PathBuf>,
}

#[derive(Helper, Hinter, Highlighter)]
struct ShellHelper {
    sources: Vec<String>,
}

impl Completer for ShellHelper {
    type Candidate = Pair;

    fn complete(&self, line: &str, position: usize, _: &Context<'_>) -> rustyline::Result<(usize, Vec<Pair>)> {
        let (start, words) = completions(&line[..position], &self.sources);
        Ok((start, words.into_iter().map(|word| Pair { display: word.clone(), replacement: word }).collect()))
    }
}

impl Validator for ShellHelper {
    fn validate(&self, context: &mut ValidationContext<'_>) -> rustyline::Result<ValidationResult> {
        let text = context.input();
        let open = !text.starts_with(':') && completeness(text) == Completeness::Open;
        Ok(if open { ValidationResult::Incomplete } else { ValidationResult::Valid(None) })
    }
}

impl LineEditor {
    /// An editor with the history of earlier runs.
    pub fn new() -> Result<LineEditor, String> {
        let config = Config::builder().auto_add_history(true).max_history_size(HISTORY_MAX);
        let config = config.map_err(|error| error.to_string())?.build();
        let mut editor = Editor::with_config(config).map_err(|error| error.to_string())?;
        editor.set_helper(Some(ShellHelper { sources: Vec::new() }));
        let history = history_file();
        if let Some(path) = &history {
            // There is no history before the first run.
            let _ = editor.load_history(path);
        }
        Ok(LineEditor { editor, history })
    }

    /// Says which traversal sources can be completed.
    pub fn set_sources(&mut self, sources: Vec<String>) {
        if let Some(helper) = self.editor.helper_mut() {
            helper.sources = sources;
        }
    }

    /// Reads one query or command.
    pub fn read(&mut self, prompt: &str) -> Result<Input, String> {
        match self.editor.readline(prompt) {
            Ok(line) => Ok(Input::Line(line)),
            Err(ReadlineError::Interrupted) => Ok(Input::Interrupted),
            Err(ReadlineError::Eof) => Ok(Input::End),
            Err(error) => Err(error.to_string()),
        }
    }

    /// Keeps the history for the next run; gives why it could not.
    pub fn save(&mut self) -> Option<String> {
        let path = self.history.as_ref()?;
        let error = self.editor.save_history(path).err()?;
        Some(format!("the history cannot be written to {}: {error}", path.display()))
    }
}

/// `FICUS_HISTORY`, or a file in the user's home.
fn history_file() -> Option<PathBuf> {
    if let Some(path) = std::env::var_os("FICUS_HISTORY") {
        return Some(PathBuf::from(path)).filter(|path| !path.as_os_str().is_empty());
    }
    std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".ficus_history"))
}
