//! SUPPORT.md says exactly what is served.

use std::collections::BTreeSet;

use sluice_emulator::surface;

#[test]
fn the_table_of_paths_is_what_the_router_serves() {
    let page = include_str!("../../SUPPORT.md");
    let table =
        page.split("<!-- paths -->").nth(1).and_then(|rest| rest.split("<!-- end of paths -->").next());
    let table = table.expect("SUPPORT.md has its table of paths between two marks");
    let rows = table.lines().filter(|line| line.starts_with("| `/"));
    let written: BTreeSet<(String, String)> = rows
        .map(|row| {
            let cells: Vec<&str> = row.split('|').map(str::trim).collect();
            (cells[1].trim_matches('`').to_owned(), cells[2].to_owned())
        })
        .collect();
    let short = |path: &str| {
        path.replace("/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.Network", "/…")
            .replace("/subscriptions/{subscription}/providers/Microsoft.Network", "/*")
    };
    let served: BTreeSet<(String, String)> =
        surface::served().map(|(path, methods)| (short(path), methods.join(", "))).collect();
    assert_eq!(written, served);
}
