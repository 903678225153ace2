//! Plain text of mails, web pages, and chat markup.

/// Returns the text and HTML parts of a mail, decoded, and its subject.
pub fn parts_of_mail(mail: &str) -> Vec<String> {
    let mut parts: Vec<String> = mail.split("\r\nContent-Type: text/").skip(1).map(decoded).collect();
    parts.extend(mail.lines().find_map(|line| line.strip_prefix("Subject: ")).map(str::to_owned));
    assert!(parts.len() > 2, "a mail has a text, a page, and a subject: {mail}");
    parts
}

fn decoded(part: &str) -> String {
    let (headers, body) = part.split_once("\r\n\r\n").expect("the end of the headers");
    let body = body.split("\r\n--").next().unwrap_or_default();
    assert!(!headers.to_ascii_lowercase().contains("base64"), "{headers}");
    if headers.to_ascii_lowercase().contains("quoted-printable") { from_quoted_printable(body) } else { body.to_owned() }
}

fn from_quoted_printable(body: &str) -> String {
    let body = body.replace("=\r\n", "");
    let (mut bytes, mut rest) = (Vec::new(), body.as_bytes());
    while let [first, tail @ ..] = rest {
        let escaped = tail.get(..2).filter(|_| *first == b'=').and_then(|digits| std::str::from_utf8(digits).ok());
        match escaped.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &tail[2..];
            }
            None => {
                bytes.push(*first);
                rest = tail;
            }
        }
    }
    String::from_utf8(bytes).expect("UTF-8")
}

/// Returns a text without markup: each row of a table and each paragraph is a line.
pub fn plain(text: &str) -> String {
    let text = text.replace('\\', "");
    if !text.contains("</") {
        return text;
    }
    let (mut plain, mut rest) = (String::new(), text.as_str());
    // Source text has line breaks where a page has none.
    while let Some((before, tail)) = rest.split_once('<') {
        plain.push_str(&before.replace(['\r', '\n'], if text.contains("<td") { " " } else { "\n" }));
        let Some((tag, after)) = tail.split_once('>') else { break };
        let name = tag.trim_start_matches('/').split([' ', '\n', '/']).next().unwrap_or_default();
        plain.push_str(if ["tr", "p", "div", "br", "li", "h1", "h2", "table", "style", "title"].contains(&name) {
            "\n"
        } else {
            " "
        });
        rest = after;
    }
    plain.push_str(rest);
    plain.replace("&nbsp;", " ").replace("&amp;", "&").replace("&#36;", "$").replace("&lt;", "<").replace("&gt;", ">")
}

/// Returns the unquoted cells of a line of CSV.
pub fn csv_cells(line: &str) -> Vec<String> {
    let (mut cells, mut is_quoted) = (vec![String::new()], false);
    for c in line.chars() {
        match (c, cells.last_mut()) {
            ('"', _) => is_quoted = !is_quoted,
            (',', _) if !is_quoted => cells.push(String::new()),
            (c, Some(cell)) => cell.push(c),
            (_, None) => {}
        }
    }
    cells
}
