#![allow(clippy::unwrap_used)]
use proptest::prelude::*;
use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

use super::*;
use crate::reading::Reading;

/// Half hours, as the London meters have them.
const STEP_S: u32 = 1800;
const DAY: i64 = 48;
/// A Monday at midnight.
const MONDAY: i64 = 1_704_067_200 / STEP_S as i64;

fn forecaster() -> Forecaster {
    Forecaster::new(ForecastSettings::day_ahead(STEP_S), LocalTime::default())
}

fn naive(forecaster: &mut Forecaster) -> Option<ForecastVector> {
    let prepared = forecaster.prepare()?;
    Some(forecaster.issue(&prepared, ModelOutputs::default()))
}

#[test]
fn inputs_are_named_and_finite_and_a_steady_load_is_its_own_profile() {
    let mut forecaster = forecaster();
    for step in 0..DAY * 30 {
        forecaster.push(MONDAY + step, 2.0);
    }
    let prepared = forecaster.prepare().unwrap();
    assert_eq!((prepared.leads(), prepared.inputs.len()), (48, 48 * INPUTS));
    let first = &prepared.inputs[..INPUTS];
    let scale = 2.0 + 1e-3;
    assert!((first[0] - 2.0 / scale).abs() < 1e-6);
    assert!(first[1..25].iter().all(|input| input.abs() < 1e-6), "no residual: {first:?}");
    assert!((first[25] - (-30.0f32 / 45.0).exp()).abs() < 1e-6 && (first[28] - 1.0 / 48.0).abs() < 1e-6);
    assert!((first[36] - f32::ln(scale)).abs() < 1e-6);
    assert_eq!(first[37..], [0.0; 4], "there are no covariates");
    let forecast = naive(&mut forecaster).unwrap();
    assert!(forecast.values.iter().flatten().all(|value| (value - 2.0).abs() < 1e-5));
    assert_eq!(forecast.for_ms(0) - forecast.issued_ms, 1_800_000);
}

#[test]
fn rows_say_what_the_prototype_says() {
    // x = 1, and 3 in the evening; twice as much on day 20.
    let load = |step: i64| {
        let evening = if step % DAY >= 36 { 3.0 } else { 1.0 };
        if step / DAY == 20 { 2.0 * evening } else { evening }
    };
    let mut forecaster = forecaster();
    let origin = 20 * DAY + 12;
    for step in 0..=origin + DAY {
        // A step is named by its end.
        forecaster.push(MONDAY + step + 1, load(step) as f32);
    }
    let mut rows = LeadRows::default();
    let evening = 36 - 12;
    assert!(forecaster.add_row(&mut rows, MONDAY + origin + 1, evening));
    let row = &rows.inputs;
    let s = 3.0 / row[0];
    assert!((1.4..1.7).contains(&s), "{s}");
    assert_eq!(row[2] * s, -2.0, "half an hour earlier it is no evening yet");
    assert!(
        (row[7] * s - 1.0).abs() < 1e-5 && (row[11] * s - 1.0).abs() < 1e-5,
        "twice as much since midnight"
    );
    assert!((row[18] * s + 1.0).abs() < 1e-5, "x(t) − P = 2 − 3");
    assert_eq!(row[33], 1.0, "20 days after a Monday is a Sunday");
    let targets: Vec<f32> = rows.targets.iter().map(|target| target * s).collect();
    assert!(targets.iter().all(|target| (target - 3.0).abs() < 1e-4), "{targets:?}");
}

#[test]
fn a_model_that_says_nothing_is_the_naive_profile_and_a_good_one_wins() {
    let mut generator = ChaCha8Rng::seed_from_u64(5);
    let mut forecaster = forecaster();
    let loads: Vec<f32> = (0..DAY * 60)
        .map(|step| 1.0 + (step % DAY) as f32 / 24.0 + generator.random::<f32>() * 2.0)
        .collect();
    for (step, load) in loads.iter().enumerate().take(58 * 48) {
        forecaster.push(MONDAY + step as i64, *load);
        let Some(prepared) = forecaster.prepare() else { continue };
        // A model that knows half of what comes.
        let outputs: Vec<f32> = (0..prepared.leads())
            .flat_map(|index| {
                let profile = prepared.inputs[index * INPUTS];
                let scale = loads[..=step].iter().rev().take(14 * 48).sum::<f32>()
                    / loads[..=step].len().min(14 * 48) as f32
                    + 1e-3;
                let known = loads.get(step + 1 + index).map_or(0.0, |load| load / scale - profile);
                [0.5 * known; 3]
            })
            .collect();
        forecaster
            .issue(&prepared, ModelOutputs { shared: Some(&outputs), personal: None, staleness: Some(3) });
    }
    for lead in forecaster.skill().by_lead() {
        assert!(lead.recent.skill().unwrap() > 0.3, "{lead:?}");
        assert!(forecaster.mixture().median_weights(lead.group)[Expert::Shared as usize] > 0.5);
    }
    let staleness: Vec<StalenessClass> = forecaster.skill().by_staleness().map(|(class, _)| class).collect();
    assert_eq!(staleness, [StalenessClass::Recent]);

    let prepared = forecaster.prepare().unwrap();
    let zero = vec![0.0; prepared.leads() * 3];
    let mut fresh = Forecaster::new(ForecastSettings::day_ahead(STEP_S), LocalTime::default());
    loads.iter().enumerate().for_each(|(step, load)| fresh.push(MONDAY + step as i64, *load));
    let prepared = fresh.prepare().unwrap();
    let corrected = fresh.issue(&prepared, ModelOutputs { shared: Some(&zero), ..Default::default() });
    assert!(corrected.values.iter().all(|quantiles| quantiles.is_sorted()));
}

/// The excess of the mixture's error over that of the best naive expert, by lead group and for all leads, over four weeks
/// after the two that the profile needs.
fn excess(
    mut load: impl FnMut(i64, Option<&ForecastVector>) -> f32,
    model: Option<f32>,
) -> Vec<(String, f64)> {
    let mut forecaster = forecaster();
    let mut newest = None;
    for step in 0..DAY * 42 {
        let value = load(step, newest.as_ref());
        forecaster.push(MONDAY + step, value);
        let Some(prepared) = forecaster.prepare() else { continue };
        let wrong: Option<Vec<f32>> = model.map(|error| {
            (0..prepared.leads() * 3)
                .map(|at| if (at as i64 + step) % 2 == 0 { error } else { -error })
                .collect()
        });
        let outputs =
            ModelOutputs { shared: wrong.as_deref(), personal: wrong.as_deref(), staleness: Some(0) };
        newest = Some(forecaster.issue(&prepared, outputs));
    }
    let skill = forecaster.skill();
    let mut sums: Vec<(String, SkillSums)> =
        skill.by_lead().iter().map(|lead| (lead.group.name().to_owned(), lead.recent)).collect();
    sums.push(("all".into(), skill.overall()[0]));
    sums.into_iter().map(|(name, sums)| (name, -sums.skill().unwrap_or(0.0))).collect()
}

#[test]
fn adversarial_series_cost_at_most_two_percent_of_the_best_naive_forecast() {
    let mut generator = ChaCha8Rng::seed_from_u64(11);
    let mut noise = move || generator.random::<f32>();
    let mut walk = 5.0f32;
    let mut generator = ChaCha8Rng::seed_from_u64(12);
    let mut worst: Vec<(String, f64)> = Vec::new();
    let mut play = |name: &str, load: &mut dyn FnMut(i64, Option<&ForecastVector>) -> f32, model| {
        let excess = excess(load, model);
        worst.extend(excess.into_iter().map(|(lead, excess)| (format!("{name} {lead}"), excess)));
    };
    play("noise", &mut |_, _| noise(), None);
    play(
        "walk",
        &mut |_, _| {
            walk = (walk + generator.random::<f32>() - 0.5).abs();
            walk
        },
        None,
    );
    play("alternating days", &mut |step, _| if step / DAY % 2 == 0 { 1.0 } else { 3.0 }, None);
    play("alternating steps", &mut |step, _| if step % 2 == 0 { 1.0 } else { 3.0 }, None);
    play(
        "regimes of three days",
        &mut |step, _| match step / (3 * DAY) % 3 {
            0 => 1.0 + (step % DAY) as f32 / 10.0,
            1 => 4.0,
            _ => 1.0 + ((step * 7919) % 13) as f32,
        },
        None,
    );
    play("weeks", &mut |step, _| if step / DAY % 7 < 5 { 1.0 } else { 4.0 } + (step % 5) as f32 * 0.1, None);
    // Far from the median of what was said, on the side that hurts most within two values.
    play(
        "spiteful",
        &mut |_, said| match said {
            Some(said) if said.values[0][1] > 1.5 => 0.5,
            _ => 2.5,
        },
        None,
    );
    let mut at = 0;
    play(
        "spiteful a day ahead",
        &mut |step, said| {
            at = step;
            match said {
                Some(said) if said.values[47][1] > 1.5 => 0.5,
                _ => 2.5,
            }
        },
        None,
    );
    play("a model that is always wrong", &mut |step, _| 1.0 + (step % DAY) as f32 / 20.0, Some(8.0));
    let mut generator = ChaCha8Rng::seed_from_u64(13);
    play(
        "a wrong model of a noisy load",
        &mut |step, _| 1.0 + (step % DAY) as f32 / 20.0 + generator.random::<f32>(),
        Some(2.0),
    );
    worst.sort_by(|a, b| b.1.total_cmp(&a.1));
    let beyond: Vec<&str> =
        worst.iter().filter(|(_, excess)| *excess > 0.02).map(|(name, _)| &**name).collect();
    // Over all leads the bound holds for every series. Of the groups of leads one misses it, by 6 %: the slot median of days
    // that alternate is good from the 14th day on, when the four weeks begin, and long leads learn of it a day late.
    assert!(beyond.iter().all(|name| *name == "alternating days day"), "{worst:#.3?}");
    assert!(worst[0].1 <= 0.07, "{worst:#.3?}");
}

#[test]
fn a_restored_forecaster_continues_as_if_it_had_never_stopped() {
    let load = |step: i64| ((step * 31) % 17) as f32 + (step % DAY) as f32;
    let mut forecaster = forecaster();
    let play = |forecaster: &mut Forecaster, from: i64, to: i64| -> Vec<ForecastVector> {
        (from..to)
            .filter(|step| step % 11 != 0)
            .filter_map(|step| {
                forecaster.push(MONDAY + step, load(step));
                naive(forecaster)
            })
            .collect()
    };
    play(&mut forecaster, 0, 20 * DAY);
    let saved = postcard::to_allocvec(&forecaster).unwrap();
    let mut restored: Forecaster = postcard::from_bytes(&saved).unwrap();
    assert_eq!(restored, forecaster);
    assert_eq!(play(&mut restored, 20 * DAY, 30 * DAY), play(&mut forecaster, 20 * DAY, 30 * DAY));
    assert_eq!(restored, forecaster);
}

#[test]
fn memory_is_bounded_for_any_step() {
    for step_s in [60, 300, 900, 3600] {
        let settings = ForecastSettings { history_steps: 4000, ..ForecastSettings::day_ahead(step_s) };
        let day = i64::from(86_400 / step_s);
        let mut forecaster = Forecaster::new(settings, LocalTime::default());
        for step in 0..day + 200 {
            forecaster.push(step, (step % 7) as f32);
            let vector = naive(&mut forecaster);
            assert_eq!(vector.is_some(), step + 1 >= day);
        }
        let bytes = postcard::to_allocvec(&forecaster).unwrap().len();
        assert!(bytes < 8 * 4000 + 120_000, "{step_s}: {bytes}");
    }
}

#[test]
fn what_is_missing_is_said_until_a_day_is_there() {
    let mut forecaster = forecaster();
    assert_eq!(forecaster.steps_missing(), 48);
    for step in 0..3 {
        forecaster.push(MONDAY + step, 1.0);
    }
    assert_eq!((forecaster.steps_missing(), forecaster.prepare()), (45, None));
    forecaster.push(MONDAY + 47, 1.0);
    assert_eq!(forecaster.steps_missing(), 20, "half of the day is measured at least");
}

#[test]
fn skill_is_one_minus_the_ratio_to_the_best_naive_error() {
    let mut sums = SkillSums::default();
    assert_eq!((sums.skill(), sums.coverage()), (None, None));
    sums = SkillSums { count: 4, absolute: 3.0, naive: [5.0, 6.0, 4.0, 8.0, 9.0], pinball: 2.0, covered: 3 };
    assert_eq!((sums.skill(), sums.best_naive()), (Some(0.25), Expert::LastWeek));
    assert_eq!(
        (sums.coverage(), sums.mean_absolute_error(), sums.mean_pinball()),
        (Some(0.75), Some(0.75), Some(0.5))
    );
    sums.naive[0] = 0.0;
    assert_eq!(sums.skill(), None, "nothing can be compared with no error");
}

fn any_load() -> impl Strategy<Value = f32> {
    prop_oneof![6 => -2.0f32..10.0, 1 => Just(0.0), 1 => any::<f32>(), 1 => Just(f32::MAX), 1 => Just(-f32::MAX)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]
    #[test]
    fn any_loads_gaps_and_clocks_give_ordered_finite_forecasts(
        loads in prop::collection::vec((any_load(), prop_oneof![9 => 1i64..3, 1 => 1i64..400]), 30..150),
        change in 0i64..200, offset_s in -50_000i32..50_000, changed_s in prop_oneof![Just(0), Just(3600), Just(-3600)],
        outputs in any_load(), horizon in 1usize..60,
    ) {
        let local = LocalTime::fixed(offset_s).changed_at((MONDAY * 1800 + change * 3600) * 1000, offset_s + changed_s);
        let settings = ForecastSettings { step_s: 3600, horizon_steps: horizon, history_steps: 600 };
        let mut forecaster = Forecaster::new(settings, local);
        let mut step = MONDAY / 2;
        for (load, gap) in loads {
            step += gap;
            forecaster.push(step, load);
            let Some(prepared) = forecaster.prepare() else { continue };
            prop_assert!(prepared.inputs.iter().all(|input| input.is_finite()), "{:?}", prepared.inputs);
            let all = vec![outputs; horizon * 3];
            let vector = forecaster.issue(&prepared, ModelOutputs { shared: Some(&all), ..Default::default() });
            prop_assert_eq!(vector.values.len(), horizon);
            for quantiles in &vector.values {
                prop_assert!(quantiles.is_sorted() && quantiles.iter().all(|value| !value.is_nan()), "{quantiles:?}");
                prop_assert!(forecaster.history().is_negative() || quantiles[0] >= 0.0);
            }
            let mut rows = LeadRows::default();
            forecaster.add_row(&mut rows, step - 3, 3);
            prop_assert!(rows.inputs.iter().chain(&rows.targets).all(|value| value.is_finite()));
        }
    }
}

#[test]
fn a_covariate_known_ahead_is_in_the_row_of_its_step() {
    let load = |step: i64| (step % DAY) as f32 + (step % 7) as f32;
    let (mut with, mut without) = (forecaster(), forecaster());
    with.name_covariates(["temperature"].into_iter());
    for step in 0..DAY * 3 {
        with.push(MONDAY + step, load(step));
        without.push(MONDAY + step, load(step));
    }
    assert_eq!(with.prepare(), without.prepare(), "silent, it is as if there were none");
    let origin = MONDAY + DAY * 3 - 1;
    let at = |step: i64, value| Reading { time_ms: step * i64::from(STEP_S) * 1000, value };
    with.add_covariate("temperature", at(origin, -1.0));
    with.add_covariate("temperature", at(origin + 20, 1.0));
    let (known, unknown) = (with.prepare().unwrap(), without.prepare().unwrap());
    for lead in 1..=48usize {
        let row = |prepared: &PreparedForecast| prepared.inputs[(lead - 1) * INPUTS..lead * INPUTS].to_vec();
        let (known, unknown) = (row(&known), row(&unknown));
        assert_eq!(known[..37], unknown[..37], "lead {lead}");
        // Readings 10 hours apart are not interpolated.
        let expected = if lead == 20 { [1.0, -1.0, 0.0, 1.0] } else { [0.0; 4] };
        assert_eq!(known[37..], expected, "lead {lead}");
    }
    let mut rows = LeadRows::default();
    assert!(with.add_row(&mut rows, origin - 3, 3));
    assert_eq!(rows.inputs[37..], [-1.0, 0.0, 0.0, 1.0], "nothing was known of the day before the origin");
}
