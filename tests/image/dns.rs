//! A name server for one name, on loopback.

use tokio::net::UdpSocket;

/// A loopback address without other listeners; /etc/resolv.conf cannot name another port.
pub const ADDRESS: (&str, u16) = ("127.53.0.1", 53);

const KIND_A: u16 = 1;
const NO_SUCH_NAME: u8 = 3;

/// Answers that `name` is 127.0.0.1 and has no other addresses, and that no other name exists.
pub async fn serve(socket: UdpSocket, name: &str) {
    let mut packet = [0; 512];
    while let Ok((length, from)) = socket.recv_from(&mut packet).await {
        if let Some(answer) = answer(&packet[..length], name) {
            // The resolver repeats the query.
            let _ = socket.send_to(&answer, from).await;
        }
    }
}

/// The answer to a query with one question; `None` for any other packet.
fn answer(query: &[u8], name: &str) -> Option<Vec<u8>> {
    let (asked, end) = question(query)?;
    let kind = u16::from_be_bytes(query.get(end..end + 2)?.try_into().ok()?);
    let known = asked == name;
    let addresses = u8::from(known && kind == KIND_A);

    let mut answer = query.get(..2)?.to_vec();
    // A response, recursion desired and available; one question, and none of the additional records.
    answer.extend([0x81, 0x80 | if known { 0 } else { NO_SUCH_NAME }, 0, 1, 0, addresses, 0, 0, 0, 0]);
    answer.extend(query.get(12..end + 4)?);
    if addresses > 0 {
        // The name of the question, A, IN, good for a second, four bytes.
        answer.extend([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 1, 0, 4, 127, 0, 0, 1]);
    }
    Some(answer)
}

/// The name in the question, and its end.
fn question(query: &[u8]) -> Option<(String, usize)> {
    let (mut labels, mut at) = (Vec::new(), 12);
    loop {
        let length = usize::from(*query.get(at)?);
        at += 1;
        if length == 0 {
            return Some((labels.join("."), at));
        }
        labels.push(std::str::from_utf8(query.get(at..at + length)?).ok()?.to_lowercase());
        at += length;
    }
}
