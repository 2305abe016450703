//! Views of many nodes and many rounds: their size and their sums.

use evenhand_coordinator::view::FederationView;
use evenhand_tests::http::get;
use evenhand_tests::synthetic;
use tokio::task::spawn_blocking;

use super::served::{options, served};

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_nodes_and_thousands_of_rounds_stay_small() {
    let (short, long) = (synthetic::view(1000, 300, 100), synthetic::view(1000, 2500, 300));
    let sizes = |view: FederationView| async {
        let (dashboard, _) = served(view, options()).await;
        let address = dashboard.address();
        let sizes = spawn_blocking(move || {
            ["nodes", "rounds", "draws", "nodes/meter-0500", "federation"]
                .map(|path| get(address, &format!("/api/v1/{path}")).body.len())
        });
        sizes.await.unwrap()
    };
    let (short, long) = (sizes(short).await, sizes(long).await);
    println!(
        "bytes of nodes, rounds, draws, a node, the federation: {short:?} after 300, {long:?} after 2,500 rounds"
    );
    assert!(long.iter().zip(short).all(|(long, short)| *long < 4 * short));
    assert!(long.iter().sum::<usize>() < 2_000_000, "{long:?}");
}

#[test]
fn thinning_a_long_history_loses_no_draw_and_no_answer() {
    for rounds in [1, 255, 256, 257, 1023, 1025, 3000] {
        let view = synthetic::view(7, rounds, rounds / 3 + 1);
        let points = view.rounds(0).rounds;
        let responses = view.overview().responses;
        assert_eq!(points.iter().map(|point| point.asked).sum::<u64>(), responses.arrived + responses.missed);
        assert_eq!(points.iter().map(|point| point.arrived).sum::<u64>(), responses.arrived);
        let refused = view.overview().refusals.values().sum::<u64>();
        assert_eq!(points.iter().map(|point| point.refused).sum::<u64>(), refused);
        assert_eq!((points[0].from, points.last().unwrap().to), (1, rounds));
        assert_eq!(points.last().unwrap().present as usize, view.overview().nodes.present);
        assert!(points.windows(2).all(|two| two[0].to + 1 == two[1].from) && points.len() <= 1024);
        for row in view.nodes().nodes {
            let page = view.node(&row.id).unwrap();
            assert_eq!(page.history.iter().map(|point| point.drawn).sum::<u32>(), row.drawn);
            assert_eq!(page.history.iter().map(|point| point.staleness).max(), Some(page.staleness_max));
            assert!(page.history.len() <= 256);
        }
    }
}
