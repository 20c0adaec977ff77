//! A histogram of the seconds of a minute in two lines of text.

/// The heights of a bar, the smallest first.
const HEIGHTS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// The sign for no value.
const NOTHING: char = '·';

/// Returns a bar for each value, and the numbers of every tenth.
pub(super) fn lines(values: &[u64]) -> [String; 2] {
    let max = values.iter().copied().max().unwrap_or_default().max(1);
    let bars = values.iter().map(|value| match value {
        0 => NOTHING,
        value => {
            let height = (value * HEIGHTS.len() as u64).div_ceil(max);
            usize::try_from(height)
                .ok()
                .and_then(|height| HEIGHTS.get(height - 1))
                .copied()
                .unwrap_or(NOTHING)
        }
    });
    let tenths = (0..values.len()).step_by(10).map(|second| format!("{second:<10}"));
    [bars.collect(), tenths.collect::<String>().trim_end().to_owned()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_grow_with_their_values() {
        let [bars, numbers] = lines(&[0, 1, 2, 8, 4, 0, 0, 0, 0, 0, 7, 1_000]);
        assert_eq!(bars, "·▁▁▁▁·····▁█");
        assert_eq!(numbers, "0         10");
        assert_eq!(lines(&[0; 3])[0], "···");
        assert_eq!(lines(&[1, 2, 3, 4, 5, 6, 7, 8])[0], "▁▂▃▄▅▆▇█");
    }
}
