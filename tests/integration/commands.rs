//! Every command and query of the documents runs.
//!
//! In `README.md` and `docs/*.md`, a line `$ labelflow ...` in a block of language `console` or
//! `sh` is run, and a block of language `sql` is run by `labelflow sql`, all of one document in
//! one directory with the files of [`prepare`]. A block after `<!-- not run: reason -->` is left
//! out.

use crate::program::{Workplace, split};
use std::path::{Path, PathBuf};
use std::process::Command;

/// A piece of a document that is run.
#[derive(Debug, PartialEq)]
struct Step {
    line: usize,
    text: String,
    is_query: bool,
    /// What a query prints, where the document says it.
    prints: Option<String>,
}

/// What is run in a document, and why the other blocks are not.
#[derive(Debug, Default, PartialEq)]
struct Steps {
    run: Vec<Step>,
    left_out: Vec<String>,
    console_blocks: usize,
}

fn steps(document: &str) -> Steps {
    let mut steps = Steps::default();
    let mut reason: Option<String> = None;
    let mut after_query = false;
    let mut lines = document.lines().enumerate();
    while let Some((number, line)) = lines.next() {
        let line = line.trim();
        if let Some(comment) = line.strip_prefix("<!-- not run:") {
            reason = Some(comment.trim_end_matches("-->").trim().to_string());
            continue;
        }
        let Some(language) = line.strip_prefix("```") else {
            if !line.is_empty() {
                reason = None;
                after_query = false;
            }
            continue;
        };
        let block: Vec<(usize, &str)> = lines
            .by_ref()
            .map(|(n, l)| (n + 1, l))
            .take_while(|(_, l)| l.trim() != "```")
            .collect();
        let language = language.split([' ', ',']).next().unwrap_or_default();
        let skip = reason.take();
        match language {
            "console" | "sh" | "sql" if skip.is_some() => {
                steps.left_out.push(format!("line {}: {}", number + 1, skip.unwrap_or_default()));
            }
            "console" | "sh" => {
                steps.console_blocks += usize::from(language == "console");
                steps.run.extend(commands(&block));
            }
            "sql" => {
                let text: Vec<&str> = block.iter().map(|(_, l)| *l).collect();
                let text = text.join("\n");
                steps.run.push(Step { line: number + 1, text, is_query: true, prints: None });
                after_query = true;
                continue;
            }
            // The block after a query is what it prints.
            "text" if after_query => {
                let text: Vec<&str> = block.iter().map(|(_, l)| *l).collect();
                if let Some(query) = steps.run.last_mut() {
                    query.prints = Some(text.join("\n"));
                }
            }
            _ => {}
        }
        after_query = false;
    }
    steps
}

/// The commands of a block: lines with a prompt, with the lines that continue them.
fn commands(block: &[(usize, &str)]) -> Vec<Step> {
    let mut found = Vec::new();
    let mut rest = block.iter();
    while let Some((line, text)) = rest.next() {
        let Some(command) = text.trim_start().strip_prefix("$ ") else { continue };
        let mut command = command.to_string();
        // A backslash or an open quote continues a command.
        while command.ends_with('\\') || command.matches('"').count() % 2 == 1 {
            let Some((_, more)) = rest.next() else { break };
            command = match command.strip_suffix('\\') {
                Some(head) => format!("{head}{}", more.trim_start_matches("> ")),
                None => format!("{command}\n{}", more.trim_start_matches("> ")),
            };
        }
        if command.starts_with("labelflow ") {
            found.push(Step { line: *line, text: command, is_query: false, prints: None });
        }
    }
    found
}

/// The files that documents may name.
fn prepare() -> Workplace {
    let place = Workplace::new();
    for (file, seed) in [("train", 1), ("new", 2), ("monday", 3), ("tuesday", 4)] {
        let output = format!("{file}.parquet");
        let seed = seed.to_string();
        place.ok(&[
            "generate",
            "--rows",
            "500",
            "--features",
            "6",
            "--labels",
            "5",
            "--seed",
            &seed,
            &output,
        ]);
    }
    for model in ["monday", "tuesday"] {
        let (input, output) = (format!("{model}.parquet"), format!("{model}.labelflow"));
        place.ok(&["fit", &input, "-o", &output]);
    }
    place.ok(&split("fit train.parquet -o tags.labelflow"));
    place
}

fn run(place: &Workplace, step: &Step) -> Result<(), String> {
    let program = Path::new(env!("CARGO_BIN_EXE_labelflow"));
    let mut command = if step.is_query {
        let mut command = Command::new(program);
        command.args(["sql", &step.text]);
        command
    } else {
        let mut command = Command::new("sh");
        let mut path = program.parent().unwrap().as_os_str().to_os_string();
        path.push(":");
        path.push(std::env::var_os("PATH").unwrap_or_default());
        command.args(["-c", &step.text]).env("PATH", path);
        command
    };
    let output = command.current_dir(place.dir()).output().unwrap();
    if output.status.success() {
        let printed = String::from_utf8_lossy(&output.stdout);
        return match &step.prints {
            Some(prints) if prints.trim() != printed.trim() => {
                Err(format!("line {}: {}\nprints\n{printed}", step.line, step.text))
            }
            _ => Ok(()),
        };
    }
    let errors = String::from_utf8_lossy(&output.stderr);
    Err(format!("line {}: {}\n{errors}", step.line, step.text))
}

#[test]
fn documents_run() {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let mut documents = vec![root.join("README.md")];
    if let Ok(entries) = std::fs::read_dir(root.join("docs")) {
        let files = entries.map(|entry| entry.unwrap().path());
        documents.extend(files.filter(|path| path.extension().is_some_and(|e| e == "md")));
    }
    documents.sort();
    let mut failures = Vec::new();
    for document in documents {
        let Ok(text) = std::fs::read_to_string(&document) else { continue };
        let name = document.strip_prefix(&root).unwrap().display().to_string();
        let steps = steps(&text);
        for reason in &steps.left_out {
            println!("{name}, {reason}: not run");
        }
        let commands = steps.run.iter().filter(|s| !s.is_query).count();
        if name == "README.md" && steps.console_blocks > 0 {
            assert!(commands > 0, "README.md has console blocks and no command");
        }
        if steps.run.is_empty() {
            continue;
        }
        let place = prepare();
        let failed = steps.run.iter().filter_map(|step| run(&place, step).err());
        failures.extend(failed.map(|f| format!("{name}, {f}")));
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn blocks_are_found() {
    let document = "\
# Title

```console
$ cargo install labelflow
$ labelflow generate a.parquet
some output
$ labelflow fit a.parquet \\
    -o a.labelflow
$ labelflow sql \"SELECT 1
> FROM t\"
```

<!-- not run: takes an hour -->
```sh
$ labelflow evaluate big.arff
```

```sql
SELECT 1;
```

```text
one
```

```rust
let x = \"$ labelflow no\";
```
";
    let found = steps(document);
    let step = |line, text: &str, is_query: bool| {
        let prints = is_query.then(|| "one".to_string());
        Step { line, text: text.into(), is_query, prints }
    };
    assert_eq!(
        found.run,
        [
            step(5, "labelflow generate a.parquet", false),
            step(7, "labelflow fit a.parquet     -o a.labelflow", false),
            step(9, "labelflow sql \"SELECT 1\nFROM t\"", false),
            step(18, "SELECT 1;", true),
        ]
    );
    assert_eq!(found.left_out, ["line 14: takes an hour"]);
    assert_eq!(found.console_blocks, 1);
    assert_eq!(steps("no blocks"), Steps::default());
}

#[test]
fn a_failing_command_is_reported() {
    let place = prepare();
    let command =
        |line, text: &str| Step { line, text: text.into(), is_query: false, prints: None };
    assert_eq!(run(&place, &command(1, "labelflow inspect tags.labelflow")), Ok(()));
    let text = "SELECT count(*) FROM 'train.parquet'; SELECT 1".to_string();
    let query = Step { line: 1, text, is_query: true, prints: None };
    assert_eq!(run(&place, &query), Ok(()));
    let other = run(&place, &Step { prints: Some("+---+".into()), ..query }).unwrap_err();
    assert!(other.contains("| 500      |"), "{other}");
    let bad = command(7, "labelflow inspect no.labelflow");
    let message = run(&place, &bad).unwrap_err();
    assert!(message.starts_with("line 7: labelflow inspect no.labelflow\nerror: "), "{message}");
}

#[test]
fn the_tables_of_parameters_are_those_of_the_registry() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/algorithms.md");
    let text = std::fs::read_to_string(page).unwrap();
    let start = text.find("<!-- parameters -->\n").unwrap() + "<!-- parameters -->\n".len();
    let end = text.find("<!-- /parameters -->").unwrap();
    let mut tables = String::new();
    let mut table = |heading: String, parameters: &[labelflow::models::Parameter]| {
        tables += &format!(
            "\n### {heading}\n\n| parameter | default | takes | what it does |\n|---|---|---|---|\n"
        );
        for p in parameters {
            let cells = [p.allowed.to_string(), p.help.to_string()].map(|c| c.replace('|', "\\|"));
            tables +=
                &format!("| `{}` | `{}` | {} | {} |\n", p.name, p.default, cells[0], cells[1]);
        }
    };
    let registry = labelflow::models::Registry::default();
    for a in registry.algorithms() {
        table(a.name.to_string(), a.parameters);
    }
    for (setting, choice) in registry.choices() {
        table(format!("{setting}={}", choice.name), choice.parameters);
    }
    assert_eq!(&text[start..end], tables + "\n", "write this into docs/algorithms.md");
}

#[test]
fn the_table_of_algorithms_is_that_of_the_registry() {
    let readme = Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md");
    let text = std::fs::read_to_string(readme).unwrap();
    let start = text.find("<!-- algorithms -->\n").unwrap() + "<!-- algorithms -->\n".len();
    let end = text.find("<!-- /algorithms -->").unwrap();
    let yes = |can: bool| if can { "yes" } else { "no" };
    let mut table = String::from(
        "| name | summary | merges | forgets | decays | reference |\n|---|---|---|---|---|---|\n",
    );
    let registry = labelflow::models::Registry::default();
    for a in registry.algorithms() {
        let (_, spec) = registry.resolve(a.name).unwrap();
        let can = (a.capabilities)(&spec);
        let merges = if can.reopens { "yes" } else { "`keep=all`" };
        let forgets = if can.forgets { merges } else { "no" };
        let decays = yes(can.decays);
        table += &format!(
            "| `{}` | {} | {merges} | {forgets} | {decays} | {} |\n",
            a.name, a.summary, a.reference
        );
    }
    assert_eq!(&text[start..end], table);
}
