//! JSON text, appended to a buffer.

/// Appends `text` in quotes, escaping only what JSON demands.
pub(super) fn append_string(text: &str, out: &mut Vec<u8>) {
    out.push(b'"');
    let bytes = text.as_bytes();
    let mut written = 0;
    for (index, &byte) in bytes.iter().enumerate() {
        if byte >= 0x20 && byte != b'"' && byte != b'\\' {
            continue;
        }
        out.extend_from_slice(&bytes[written..index]);
        written = index + 1;
        match byte {
            b'"' => out.extend_from_slice(b"\\\""),
            b'\\' => out.extend_from_slice(b"\\\\"),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            0x08 => out.extend_from_slice(b"\\b"),
            0x0c => out.extend_from_slice(b"\\f"),
            control => {
                const HEX: &[u8; 16] = b"0123456789abcdef";
                out.extend_from_slice(b"\\u00");
                out.push(HEX[usize::from(control >> 4)]);
                out.push(HEX[usize::from(control & 15)]);
            }
        }
    }
    out.extend_from_slice(&bytes[written..]);
    out.push(b'"');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_escaped_as_little_as_possible() {
        let check = |text: &str, expected: &str| {
            let mut out = Vec::new();
            append_string(text, &mut out);
            assert_eq!(String::from_utf8(out).unwrap(), expected);
        };
        check("a\"b\\c\n\t\u{1}é\u{2028}/😀\u{7f}", "\"a\\\"b\\\\c\\n\\t\\u0001é\u{2028}/😀\u{7f}\"");
        check("", "\"\"");
        check("\u{8}\u{c}\r\u{1f}", "\"\\b\\f\\r\\u001f\"");
    }
}
