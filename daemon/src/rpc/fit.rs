//! A list of processes that fits a message: stock clients take 4 MiB, and one command line may have 64 KiB.

use nrt_trace_proto::v1;
use prost::Message;

/// Bytes of a reply.
const REPLY_BYTES: usize = 3 << 20;
/// What stands where a command line was cut.
const CUT: &str = "...";

/// The list, with long command lines cut if it would be too large.
pub(super) fn producers(list: Vec<v1::Producer>) -> v1::ListProducersResponse {
    within(list, REPLY_BYTES)
}

fn within(mut producers: Vec<v1::Producer>, bytes: usize) -> v1::ListProducersResponse {
    let mut longest = 64 << 10;
    loop {
        let reply = v1::ListProducersResponse { producers };
        if reply.encoded_len() <= bytes || longest == 0 {
            return reply;
        }
        producers = reply.producers;
        longest /= 2;
        producers.iter_mut().for_each(|one| cut(one, longest));
    }
}

fn cut(producer: &mut v1::Producer, bytes: usize) {
    let mut left = bytes;
    let fits = |argument: &&String| {
        let enough = argument.len() < left;
        left = left.saturating_sub(argument.len() + 1);
        enough
    };
    let keep = producer.cmdline.iter().take_while(fits).count();
    if keep < producer.cmdline.len() {
        producer.cmdline.truncate(keep);
        producer.cmdline.push(CUT.to_owned());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(arguments: usize) -> v1::Producer {
        v1::Producer {
            cmdline: vec!["x".repeat(99); arguments],
            ..v1::Producer::default()
        }
    }

    #[test]
    fn long_command_lines_give_way_and_short_ones_stay() {
        let whole = within(vec![process(600), process(2)], 100_000);
        assert_eq!(whole.producers[0].cmdline.len(), 600);
        let cut = within(vec![process(600), process(600), process(2)], 100_000);
        assert!(cut.encoded_len() <= 100_000);
        assert_eq!(cut.producers[0].cmdline.last().unwrap(), CUT);
        assert!(cut.producers[0].cmdline.len() > 200);
        assert_eq!(cut.producers[2], process(2));
        // Nothing else is left to be cut.
        let few = within(vec![process(600); 10], 1);
        assert!(few.producers.iter().all(|one| one.cmdline == [CUT]));
    }
}
