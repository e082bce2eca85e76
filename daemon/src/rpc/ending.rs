//! Streams that say why they end, when the server does.

use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::sync::watch;
use tokio_stream::Stream;
use tonic::Status;

use super::status;
use crate::run::error::RunError;

/// The end of the server, told to its streams.
#[derive(Clone, Debug)]
pub(super) struct Ending(watch::Sender<bool>);

impl Default for Ending {
    fn default() -> Self {
        Self(watch::channel(false).0)
    }
}

impl Ending {
    /// Ends every stream.
    pub(super) fn tell(&self) {
        self.0.send_replace(true);
    }

    /// `stream`, until the server ends.
    pub(super) fn ends<S>(&self, stream: S) -> UntilEnd<S> {
        let mut told = self.0.subscribe();
        UntilEnd {
            stream: Some(stream),
            // The sender may go without a word only when nobody is left to be told.
            ending: Box::pin(async move { drop(told.wait_for(|ending| *ending).await) }),
        }
    }
}

/// A stream that ends with UNAVAILABLE when the server does, whatever it would still have to say.
pub(crate) struct UntilEnd<S> {
    stream: Option<S>,
    ending: Pin<Box<dyn Future<Output = ()> + Send>>,
}

impl<T, S: Stream<Item = Result<T, Status>> + Unpin> Stream for UntilEnd<S> {
    type Item = S::Item;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<S::Item>> {
        let this = &mut *self;
        let Some(stream) = &mut this.stream else {
            return Poll::Ready(None);
        };
        if this.ending.as_mut().poll(context).is_ready() {
            // Whoever feeds it learns by this that nobody listens.
            this.stream = None;
            return Poll::Ready(Some(Err(status::of_error(&RunError::ShuttingDown))));
        }
        Pin::new(stream).poll_next(context)
    }
}

#[cfg(test)]
mod tests {
    use tokio_stream::StreamExt;
    use tonic::Code;

    use super::*;

    #[tokio::test]
    async fn a_stream_says_why_it_ends_and_ends() {
        let ending = Ending::default();
        let mut stream = ending.ends(tokio_stream::iter([Ok(1), Ok(2), Ok(3)]));
        assert_eq!(stream.next().await.unwrap().unwrap(), 1);
        ending.tell();
        assert_eq!(
            stream.next().await.unwrap().unwrap_err().code(),
            Code::Unavailable
        );
        assert!(stream.next().await.is_none());
        let mut late = ending.ends(tokio_stream::iter([Ok(1)]));
        late.next().await.unwrap().unwrap_err();
    }
}
