//! `calc stop`: a stop rule on a history of contributions, or the bare one-sample test.

use std::io::{BufRead, Write};

use evenhand_fairness::hotelling::{Hotelling, NoStatistic, one_sample};
use evenhand_fairness::{FairnessError, StopRule, StopVerdict};
use serde::{Deserialize, Serialize};

use super::CalcError;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct StopQuestion {
    rule: Option<StopRuleName>,
    contributions: Option<Vec<Vec<f64>>>,
    window: Option<usize>,
    alpha: Option<f64>,
    level: Option<f64>,
    precision: Option<f64>,
    temperature: Option<f64>,
    tested_nodes: Option<Vec<usize>>,
    samples: Option<Vec<Vec<f64>>>,
    mu0: Option<Vec<f64>>,
}

#[derive(Deserialize, Clone, Copy, Default)]
#[serde(rename_all = "kebab-case")]
enum StopRuleName {
    #[default]
    Paper,
    Calibrated,
}

#[derive(Serialize)]
struct TestAnswer {
    t2: f64,
    f: f64,
    p_value: f64,
}

#[derive(Serialize)]
struct StopAnswer {
    t2: Option<f64>,
    f: Option<f64>,
    p_value: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    trend_p_value: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    half_width: Option<f64>,
    stop: bool,
    /// A sentence.
    reason: String,
}

impl From<StopVerdict> for StopAnswer {
    fn from(verdict: StopVerdict) -> Self {
        let StopVerdict { t2, f, p_value, trend_p_value, half_width, stop, reason, .. } = verdict;
        Self { t2, f, p_value, trend_p_value, half_width, stop, reason: reason.to_string() }
    }
}

/// Answers one question.
pub(super) fn run(stdin: impl BufRead, stdout: impl Write) -> Result<(), CalcError> {
    let question: StopQuestion = super::read(stdin)?;
    match (&question.contributions, &question.samples) {
        (Some(contributions), None) => {
            super::write(stdout, &StopAnswer::from(judge(&question, contributions)?))
        }
        (None, Some(samples)) => super::write(stdout, &test(samples, question.mu0.as_deref())?),
        _ => Err(CalcError::Refused("give either contributions, or samples and mu0".into())),
    }
}

fn judge(question: &StopQuestion, contributions: &[Vec<f64>]) -> Result<StopVerdict, CalcError> {
    let nodes = rectangular("contributions", contributions)?;
    let tested_nodes = question.tested_nodes.clone().unwrap_or_else(|| (0..nodes).collect());
    for (i, &node) in tested_nodes.iter().enumerate() {
        if node >= nodes {
            return Err(out_of_range(format!("tested_nodes[{i}]"), node as f64, "a column of contributions"));
        }
        if tested_nodes[..i].contains(&node) {
            return Err(out_of_range(format!("tested_nodes[{i}]"), node as f64, "a node not tested already"));
        }
    }
    let window = question.window.unwrap_or(15);
    if window == 0 {
        return Err(out_of_range("window".into(), 0.0, "at least 1"));
    }
    let rate = |field: &str, value: Option<f64>, otherwise: f64| match value.unwrap_or(otherwise) {
        value if value > 0.0 && value < 1.0 => Ok(value),
        value => Err(out_of_range(field.into(), value, "between 0 and 1")),
    };
    let positive = |field: &str, value: f64| {
        if value > 0.0 { Ok(value) } else { Err(out_of_range(field.into(), value, "above 0")) }
    };
    match question.rule.unwrap_or_default() {
        StopRuleName::Paper => {
            let rule = StopRule::Paper { window, alpha: rate("alpha", question.alpha, 0.7)? };
            Ok(rule.judge(contributions, &tested_nodes, 1.0))
        }
        StopRuleName::Calibrated => {
            let temperature = question.temperature.ok_or_else(|| {
                CalcError::Refused("temperature is missing; precision is in units of it".into())
            })?;
            let rule = StopRule::Calibrated {
                window,
                level: rate("level", question.level, 0.05)?,
                precision: positive("precision", question.precision.unwrap_or(1.0))?,
            };
            Ok(rule.judge(contributions, &tested_nodes, positive("temperature", temperature)?))
        }
    }
}

fn test(samples: &[Vec<f64>], mu0: Option<&[f64]>) -> Result<TestAnswer, CalcError> {
    let columns = rectangular("samples", samples)?;
    let mu0 = mu0.ok_or_else(|| CalcError::Refused("mu0 is missing".into()))?;
    if mu0.len() != columns {
        return Err(length("mu0".into(), mu0.len(), columns));
    }
    match one_sample(samples, mu0) {
        Ok(Hotelling { t2, f, p_value }) => Ok(TestAnswer { t2, f, p_value }),
        Err(none) => Err(CalcError::Refused(match none {
            NoStatistic::TooFew { needed } => {
                format!("samples has {} rows; {columns} columns need {needed}", samples.len())
            }
            NoStatistic::Constant { column } => format!("samples[..][{column}] never varies"),
            NoStatistic::Singular => "samples has columns that determine each other".into(),
        })),
    }
}

/// The number of columns, if every row has as many.
fn rectangular(field: &str, rows: &[Vec<f64>]) -> Result<usize, CalcError> {
    let columns = rows.first().map_or(0, Vec::len);
    if columns == 0 {
        return Err(CalcError::Refused(format!("{field} is empty")));
    }
    match rows.iter().position(|row| row.len() != columns) {
        Some(i) => Err(length(format!("{field}[{i}]"), rows[i].len(), columns)),
        None => Ok(columns),
    }
}

fn length(field: String, found: usize, expected: usize) -> CalcError {
    FairnessError::Length { field, found, expected }.into()
}

fn out_of_range(field: String, found: f64, wanted: &'static str) -> CalcError {
    FairnessError::OutOfRange { field, found, wanted }.into()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::CalcCommand::Stop;
    use super::super::tests::{ask, refused};
    use serde_json::{Value, json};

    /// Rows that vary without a pattern.
    fn rows(rounds: usize) -> Vec<Vec<f64>> {
        let value = |i: usize| ((i * 7919 + 13) % 101) as f64 / 101.0;
        (0..rounds).map(|round| (0..3).map(|node| value(3 * round + node)).collect()).collect()
    }

    #[test]
    fn the_paper_rule_answers_in_full() {
        let answer = ask(&Stop, &json!({"rule": "paper", "contributions": rows(40), "window": 5, "alpha": 0.5, "tested_nodes": [0, 2]}).to_string());
        let mut keys: Vec<&String> = answer.as_object().unwrap().keys().collect();
        keys.sort();
        assert_eq!(keys, ["f", "p_value", "reason", "stop", "t2"]);
        assert_eq!(answer["stop"], json!(true));
        assert!(answer["reason"].as_str().unwrap().starts_with("settled: p = "));
    }

    #[test]
    fn too_few_rounds_are_an_answer_too() {
        let answer = ask(&Stop, &json!({"contributions": rows(10), "tested_nodes": [0]}).to_string());
        assert_eq!(answer["p_value"], Value::Null);
        assert_eq!(answer["stop"], json!(false));
        assert_eq!(answer["reason"], "not yet, because 10 rounds are too few: the test needs 16");
    }

    #[test]
    fn the_calibrated_rule_says_how_precise_the_standings_are() {
        let question = |precision: f64| {
            json!({"rule": "calibrated", "contributions": rows(60), "precision": precision, "temperature": 0.1}).to_string()
        };
        let answer = ask(&Stop, &question(1.0));
        assert!(answer["half_width"].as_f64().unwrap() > 0.1, "{answer}");
        assert!(answer["reason"].as_str().unwrap().contains("is known to"));
        assert_eq!(ask(&Stop, &question(10.0))["stop"], json!(true));
    }

    #[test]
    fn the_bare_test_is_student_s_squared() {
        // mean 2, s² = 1, n = 3: T² = F = 3·(2 − 1)².
        let answer = ask(&Stop, r#"{"samples":[[1],[2],[3]],"mu0":[1]}"#);
        let close = |field: &str, wanted: f64| (answer[field].as_f64().unwrap() - wanted).abs() < 1e-12;
        assert!(close("t2", 3.0) && close("f", 3.0), "{answer}");
        // P(|t₂| > √3) = 1 − √3/√(3 + 2).
        assert!(close("p_value", 1.0 - (3.0f64 / 5.0).sqrt()), "{answer}");
    }

    #[test]
    fn bad_questions_name_the_field() {
        for (question, error) in [
            (json!({"contributions": [[1, 2], [3]]}), "contributions[1] has 1 values, expected 2"),
            (json!({"contributions": []}), "contributions is empty"),
            (
                json!({"contributions": [[1]], "tested_nodes": [1]}),
                "tested_nodes[0] = 1 must be a column of contributions",
            ),
            (
                json!({"contributions": [[1]], "tested_nodes": [0, 0]}),
                "tested_nodes[1] = 0 must be a node not tested already",
            ),
            (json!({"contributions": [[1]], "window": 0}), "window = 0 must be at least 1"),
            (json!({"contributions": [[1]], "alpha": 1.5}), "alpha = 1.5 must be between 0 and 1"),
            (
                json!({"contributions": [[1]], "rule": "calibrated"}),
                "temperature is missing; precision is in units of it",
            ),
            (
                json!({"contributions": [[1]], "rule": "calibrated", "temperature": -1}),
                "temperature = -1 must be above 0",
            ),
            (json!({"samples": [[1, 2], [3, 4]], "mu0": [1]}), "mu0 has 1 values, expected 2"),
            (json!({"samples": [[1, 2], [3, 4]], "mu0": [1, 2]}), "samples has 2 rows; 2 columns need 3"),
            (json!({"samples": [[1], [1]], "mu0": [1]}), "samples[..][0] never varies"),
            (json!({"samples": [[1], [2]]}), "mu0 is missing"),
            (json!({}), "give either contributions, or samples and mu0"),
        ] {
            assert_eq!(refused(&Stop, &question.to_string()), error, "{question}");
        }
        assert!(refused(&Stop, r#"{"contributions":[[1,NaN]]}"#).starts_with("contributions[0][1]: "));
    }
}
