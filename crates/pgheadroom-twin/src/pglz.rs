//! PostgreSQL's own compression ([`pgheadroom_layout::pglz`]), against what a server stored.

#[cfg(test)]
mod tests {
    use pgheadroom_layout::pglz::compress;

    use crate::text::Text;

    fn compressed(text: &str) -> Option<usize> {
        compress(text.as_bytes()).map(|bytes| bytes.len())
    }

    /// `left(repeat(md5(n::text), 300), n)` on a server: `pg_column_size` without its 8 bytes of
    /// header.
    #[test]
    fn repeated_hashes() {
        for (length, stored) in [
            (2700, 76),
            (3400, 85),
            (4100, 91),
            (4800, 101),
            (5500, 109),
            (6200, 116),
            (6900, 126),
            (7600, 132),
            (8300, 141),
            (9000, 148),
        ] {
            let text = Text::new(&length.to_string()).hashed_again(length, false);
            let bytes = compress(&text.to_bytes()).unwrap();
            assert_eq!(bytes.len() + 8, stored, "{length}");
        }
    }

    /// Hashes alone save too little.
    #[test]
    fn hashes_are_incompressible() {
        for length in (2000..3300).step_by(100) {
            assert_eq!(
                compress(&Text::hashes(i64::from(length), length).to_bytes()),
                None
            );
        }
        assert_eq!(compressed("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"), None);
        assert_eq!(compressed("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"), Some(5));
    }

    /// `left(string_agg((k * k * n % 1000)::text || ':', ''), n)` over k: matches of many lengths.
    #[test]
    fn numbers() {
        for (n, stored) in [
            (3040, 107),
            (4410, 188),
            (7150, 122),
            (12_630, 277),
            (2637, 1176),
            (3511, 1174),
            (4385, 289),
            (5259, 1210),
            (7881, 1214),
        ] {
            let mut text: String = (1..=6000_u64)
                .map(|k| format!("{}:", k * k * n % 1000))
                .collect();
            text.truncate(usize::try_from(n).unwrap());
            assert_eq!(compressed(&text).unwrap() + 8, stored, "{n}");
        }
    }

    /// `left(string_agg(md5((k % 40 + n)::text) || k, ''), n)`: matches far back, and more
    /// positions than the history holds.
    #[test]
    fn hashes_again_after_a_while() {
        for (n, stored) in [(2200, 1594), (7948, 2390), (12_259, 2962), (19_444, 3955)] {
            let mut text = Vec::new();
            for k in 1..=900_i64 {
                let number = (k % 40 + i64::from(n)).to_string();
                text.extend(Text::new(&number).hashed_again(32, false).to_bytes());
                text.extend(k.to_string().bytes());
            }
            text.truncate(usize::try_from(n).unwrap());
            assert_eq!(compress(&text).unwrap().len() + 8, stored, "{n}");
        }
    }
}
