use super::*;

#[test]
fn bars_fit_their_area() {
    let bars = bars(&[vec![0.0, 1.0, 200.0, f64::NAN, -1.0], vec![7.0; 48]].concat(), 1000.0, 100.0, 3.0);
    assert!(bars.iter().all(|bar| bar.x + bar.width <= 1000.0 && bar.width > 0.0), "{bars:?}");
    let heights: Vec<f64> = bars.iter().take(5).map(|bar| bar.height).collect();
    assert_eq!(heights, [0.0, 0.5, 100.0, 0.0, 0.0]);
}
