//! The contract of the command line: scripts rely on it.

use serde_json::Value;
use std::process::{Command, Output};

fn sim(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_zswap-sim"))
        .args(args)
        .output()
        .expect("the program starts")
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).expect("UTF-8")
}

fn run_json(args: &[&str]) -> Value {
    let output = sim(&[&["run", "b1-1cpu", "--json", "--set", "duration_s=1"], args].concat());
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).expect("JSON")
}

#[test]
fn a_run_reports_every_field_and_every_setting() {
    let report = run_json(&["--set", "context=onstack", "--seed", "5", "--runs", "2"]);
    assert_eq!(report["scenario"], "b1-1cpu");
    for (key, value) in [
        ("context", Value::from("onstack")),
        ("cpus", Value::from(1)),
        ("hz", Value::from(1000)),
        ("hrtick", Value::from("on")),
        ("base_slice_ns", Value::from(700_000)),
        ("preempt", Value::from("lazy")),
        ("compressor", Value::from("zstd")),
        ("duration_s", Value::from(1)),
        ("page_content", Value::from("half-random")),
        ("workers.count", Value::from(4)),
        ("workers.nice", Value::from(10)),
        ("workers.pages", Value::from(256)),
        ("spinners.count", Value::from(1)),
        ("spinners.nice", Value::from(0)),
        ("readers.count", Value::from(1)),
        ("readers.nice", Value::from(-19)),
        ("readers.pages", Value::from(64)),
        ("readers.sleep_us", Value::from(0)),
        ("cost.compress_ns", Value::from(16_000)),
        ("cost.decompress_ns", Value::from(6_000)),
        ("cost.store_ns", Value::from(4_000)),
        ("cost.load_ns", Value::from(2_750)),
        ("cost.store_locked_ns", Value::from(1_800)),
        ("cost.load_locked_ns", Value::from(600)),
        ("cost.switch_ns", Value::from(1_500)),
        ("cost.user_ns", Value::from(100)),
    ] {
        assert_eq!(report["settings"][key], value, "{key}");
    }
    let runs = report["runs"].as_array().expect("an array");
    assert_eq!(runs.len(), 2);
    for (run, seed) in runs.iter().zip([5, 6]) {
        assert_eq!(run["seed"], seed);
        for field in [
            "reads",
            "slowest_read_ns",
            "p50_ns",
            "p99_ns",
            "p999_ns",
            "stores",
            "events",
            "wall_ns",
        ] {
            assert!(run[field].as_u64().is_some_and(|n| n > 0), "{field}");
        }
        assert_eq!(run["reads_over_10ms"], 0);
        assert!(run["worker_reads"].is_u64());
        let hash = run["trace_hash"].as_str().expect("a string");
        assert!(hash.len() == 16 && u64::from_str_radix(hash, 16).is_ok());
    }
    assert_ne!(runs[0]["trace_hash"], runs[1]["trace_hash"]);
}

#[test]
fn the_same_seed_gives_the_same_trace() {
    let hash = |seed| run_json(&["--seed", seed])["runs"][0]["trace_hash"].clone();
    assert_eq!(hash("3"), hash("3"));
    assert_ne!(hash("3"), hash("4"));
}

#[test]
fn a_wrong_call_is_status_2_and_one_line_that_helps() {
    let broken = std::env::temp_dir().join(format!("zswap-sim-{}.toml", std::process::id()));
    std::fs::write(&broken, "cpus = 1\n[readers]\nnice = -99\n").expect("a temporary file");
    let broken = broken.to_string_lossy().into_owned();
    for (args, parts) in [
        (vec!["run", "nope"], vec!["nope", "zswap-sim list"]),
        (
            vec!["run", "b1-1cpu", "--set", "colour=red"],
            vec!["colour"],
        ),
        (
            vec!["run", "b1-1cpu", "--set", "hz=99"],
            vec!["hz is 99", "100, 250, 300 or 1000"],
        ),
        (
            vec!["run", "b1-1cpu", "--set", "workers.count=99999"],
            vec!["workers.count is 99999", "0 to 64"],
        ),
        (
            vec!["run", "b1-1cpu", "--set", "context=both"],
            vec!["both", "shared, split or onstack"],
        ),
        (
            vec!["run", "b1-1cpu", "--set", "context"],
            vec!["KEY=VALUE"],
        ),
        (
            vec!["run", &broken],
            vec!["line 3", "readers.nice is -99", "-20 to 19"],
        ),
    ] {
        let output = sim(&args);
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert!(output.stdout.is_empty(), "{args:?}");
        let error = String::from_utf8(output.stderr).expect("UTF-8");
        assert_eq!(error.trim_end().lines().count(), 1, "{error}");
        for part in parts {
            assert!(error.contains(part), "{error} / {part}");
        }
    }
    std::fs::remove_file(broken).expect("it was there");
}

#[test]
fn the_list_names_scenarios_and_keys() {
    let list = stdout(&sim(&["list"]));
    for part in [
        "b1-1cpu",
        "workers.count",
        "cost.compress_ns",
        "shared, split or onstack",
    ] {
        assert!(list.contains(part), "{part}");
    }
}

#[test]
fn a_scenario_file_runs_like_a_built_in_one() {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../assets/scenarios/b1-1cpu.toml"
    );
    let args = ["run", path, "--json", "--set", "duration_s=1"];
    let from_file: Value = serde_json::from_slice(&sim(&args).stdout).expect("JSON");
    let built_in = run_json(&[]);
    assert_eq!(from_file["scenario"], built_in["scenario"]);
    assert_eq!(
        from_file["runs"][0]["trace_hash"],
        built_in["runs"][0]["trace_hash"]
    );
}

#[test]
fn help_has_examples_and_a_bare_call_shows_it() {
    assert!(stdout(&sim(&["run", "--help"])).contains("Examples:"));
    let bare = sim(&[]);
    assert_eq!(bare.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&bare.stderr).contains("Usage:"));
}

#[test]
fn a_closed_pipe_is_no_error() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_zswap-sim"))
        .arg("list")
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .expect("the program starts");
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("it ends");
    assert!(
        output.status.success() && output.stderr.is_empty(),
        "{output:?}"
    );
}

#[test]
fn size_classes_are_those_of_the_reference_and_a_wrong_chain_is_refused() {
    for (args, file) in [
        (vec!["--chain", "4"], "zsmalloc-classes-chain4.csv"),
        (vec!["--chain", "8"], "zsmalloc-classes-chain8.csv"),
        (
            vec!["--chain", "4", "--legacy"],
            "zsmalloc-classes-chain4-legacy-usedpc.csv",
        ),
        (
            vec!["--chain", "8", "--legacy"],
            "zsmalloc-classes-chain8-legacy-usedpc.csv",
        ),
    ] {
        let path = format!("{}/../mm/tests/data/{file}", env!("CARGO_MANIFEST_DIR"));
        let known = std::fs::read_to_string(path).expect("the reference's table");
        let printed = stdout(&sim(&[&["classes", "--csv"], args.as_slice()].concat()));
        assert_eq!(
            printed.lines().collect::<Vec<_>>(),
            known.lines().collect::<Vec<_>>()
        );
    }
    let refused = sim(&["classes", "--chain", "3"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("4 to 16"));
}

#[test]
fn the_layout_shows_the_72_bytes() {
    let layout = stdout(&sim(&["layout"]));
    assert!(layout.contains("160 - 88 = +72 bytes"), "{layout}");
}

#[test]
fn explain_tells_the_slowest_reads() {
    let args = [
        "explain",
        "b1-1cpu",
        "--set",
        "duration_s=1",
        "--slowest",
        "2",
    ];
    let told = stdout(&sim(&args));
    let heads: Vec<&str> = told.lines().filter(|line| !line.starts_with(' ')).collect();
    assert_eq!(heads.len(), 2, "{told}");
    assert!(heads[0].starts_with("1. reader 0, page "), "{told}");
    assert!(
        told.contains("sleeps on acomp_ctx.mutex of CPU 0"),
        "{told}"
    );
    assert!(told.contains("<== not running"), "{told}");
    assert_eq!(told.matches("the read ends").count(), 2, "{told}");
    assert_eq!(stdout(&sim(&args)), told, "the same seed, the same story");
    let none = [
        "explain",
        "b1-1cpu",
        "--set",
        "duration_s=1",
        "--set",
        "readers.count=0",
    ];
    assert_eq!(stdout(&sim(&none)), "the run has no timed reads\n");
}

#[test]
fn locks_prints_a_design_and_knows_their_names() {
    let output = sim(&["locks", "--preset", "patch-2"]);
    let text = stdout(&output);
    assert!(
        output.status.success() && text.starts_with("patch-2: "),
        "{text}"
    );
    let load = text.split("load\n").nth(1).expect("a load");
    let load = load.split("writeback\n").next().expect("a writeback");
    assert!(
        !load.contains("mutex") && load.contains("zspage lock, shared"),
        "{load}"
    );
    let all = stdout(&sim(&["locks"]));
    assert!(
        all.contains("\n6.10: ") && all.contains("tree->lock"),
        "{all}"
    );
    let wrong = sim(&["locks", "--preset", "6.9"]);
    assert_eq!(wrong.status.code(), Some(2));
    let said = String::from_utf8_lossy(&wrong.stderr).into_owned();
    assert!(
        said.contains("unknown preset `6.9`: use one of 6.7 "),
        "{said}"
    );
}

#[test]
fn soak_and_contention_report() {
    let text = stdout(&sim(&["soak", "--ops", "2000", "--seed", "4"]));
    assert!(
        text.contains("operations") && text.contains("all memory accounted for"),
        "{text}"
    );
    let text = stdout(&sim(&["contention", "--cpus", "2"]));
    assert!(
        text.contains("6.10-onepool") && text.contains("xa_lock"),
        "{text}"
    );
}
