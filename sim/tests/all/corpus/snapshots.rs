//! The corpus' traces, as text that diffs.

use sim::run::run;

#[test]
fn the_traces_of_the_corpus_are_what_they_were() {
    let mut settings = insta::Settings::clone_current();
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| {
        for (name, schedule) in crate::support::corpus() {
            for arm in schedule.expect.arms() {
                let report = run(&schedule, arm, schedule.seed).unwrap();
                insta::assert_snapshot!(format!("{name}-{arm}"), report.trace());
            }
        }
    });
}
