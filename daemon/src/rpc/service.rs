//! One method for each RPC: check, ask the registry, answer.

use nrt_trace_model::{Category, EventType, Status as NrtStatus};
use nrt_trace_proto::v1;
use nrt_trace_proto::v1::trace_control_server::TraceControl;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status};

use super::ending::{Ending, UntilEnd};
use super::metrics::Source;
use super::subscribe::Subscriber;
use super::{fit, host, metrics, status, stream, strings};
use crate::config::Current;
use crate::drain::fetch::FetchJob;
use crate::host::HostMonitor;
use crate::metrics::Calls;
use crate::registry::command::{Command, Handle};
use crate::run::error::RunError;
use crate::run::request::{FetchSpec, FilterSpec, StartSpec, SubscribeSpec, token};

/// The control API over a registry.
#[derive(Debug)]
pub(crate) struct Control {
    config: Current,
    handle: Handle,
    host: HostMonitor,
    calls: Calls,
    ending: Ending,
}

/// What comes out of a channel, until the server ends.
type Out<T> = UntilEnd<ReceiverStream<T>>;

impl Control {
    /// An API that asks the registry behind `handle`, and the host monitor.
    pub(crate) fn new(config: Current, handle: Handle, host: HostMonitor) -> Self {
        Self {
            config,
            handle,
            host,
            calls: Calls::default(),
            ending: Ending::default(),
        }
    }

    /// Where its metrics come from.
    pub(super) fn source(&self) -> Source {
        Source {
            handle: self.handle.clone(),
            host: self.host.clone(),
            calls: self.calls.clone(),
        }
    }

    /// What ends its streams.
    pub(super) fn ending(&self) -> Ending {
        self.ending.clone()
    }

    async fn ask<T>(
        &self,
        request: impl FnOnce(crate::registry::command::Reply<T>) -> Command,
    ) -> Result<Response<T>, Status> {
        answer(self.handle.ask(request).await)
    }

    /// Reads `job` in a thread of its own.
    fn stream(&self, job: FetchJob, commit: bool) -> Result<Response<Out<stream::Item>>, Status> {
        let (handle, runtime) = (self.handle.clone(), tokio::runtime::Handle::current());
        let calls = self.calls.clone();
        self.feed("nrt-fetch", move |parts| {
            stream::feed(job, commit, parts, &handle, &runtime, &calls);
        })
    }

    /// A stream of what `feed` puts into it, in a thread of its own.
    fn feed(
        &self,
        name: &str,
        feed: impl FnOnce(&mpsc::Sender<stream::Item>) + Send + 'static,
    ) -> Result<Response<Out<stream::Item>>, Status> {
        let (sender, receiver) = mpsc::channel(stream::PARTS);
        std::thread::Builder::new()
            .name(name.to_owned())
            .spawn(move || feed(&sender))
            .map_err(|error| {
                let text = format!("no thread for a stream: {error}");
                status::with_nrt(Status::resource_exhausted(text), NrtStatus::Resource)
            })?;
        Ok(Response::new(
            self.ending.ends(ReceiverStream::new(receiver)),
        ))
    }
}

fn answer<T>(result: Result<T, RunError>) -> Result<Response<T>, Status> {
    result
        .map(Response::new)
        .map_err(|error| status::of_error(&error))
}

fn check<T>(result: Result<T, RunError>) -> Result<T, Status> {
    result.map_err(|error| status::of_error(&error))
}

#[tonic::async_trait]
impl TraceControl for Control {
    type FetchStream = Out<stream::Item>;
    type SnapshotStream = Out<stream::Item>;
    type SubscribeStream = Out<stream::Item>;
    type GetMetricsStream = tokio_stream::Iter<std::vec::IntoIter<metrics::Item>>;
    type WatchHostStatsStream = Out<host::Item>;

    async fn start(
        &self,
        request: Request<v1::StartRequest>,
    ) -> Result<Response<v1::StartResponse>, Status> {
        let spec = check(StartSpec::new(request.into_inner(), &self.config.get()))?;
        self.ask(|reply| Command::Start(spec, reply)).await
    }

    async fn set_filter(
        &self,
        request: Request<v1::SetFilterRequest>,
    ) -> Result<Response<v1::SetFilterResponse>, Status> {
        let spec = check(FilterSpec::new(request.into_inner(), &self.config.get()))?;
        self.ask(|reply| Command::SetFilter(spec, reply)).await
    }

    async fn stop(
        &self,
        request: Request<v1::StopRequest>,
    ) -> Result<Response<v1::StopResponse>, Status> {
        let v1::StopRequest {
            token: given,
            discard,
        } = request.into_inner();
        let token = check(token(given))?;
        self.ask(|reply| Command::Stop {
            token,
            discard,
            reply,
        })
        .await
    }

    async fn fetch(
        &self,
        request: Request<v1::FetchRequest>,
    ) -> Result<Response<Self::FetchStream>, Status> {
        let request = request.into_inner();
        let spec = check(FetchSpec::new(&request))?;
        let commit = request.auto_commit || request.discard;
        let job = check(self.handle.ask(|reply| Command::Fetch(spec, reply)).await)?;
        self.stream(job, commit)
    }

    async fn snapshot(
        &self,
        request: Request<v1::SnapshotRequest>,
    ) -> Result<Response<Self::SnapshotStream>, Status> {
        let spec = check(FetchSpec::of_snapshot(request.into_inner()))?;
        let job = check(
            self.handle
                .ask(|reply| Command::Snapshot(spec, reply))
                .await,
        )?;
        self.stream(job, false)
    }

    async fn subscribe(
        &self,
        request: Request<v1::SubscribeRequest>,
    ) -> Result<Response<Self::SubscribeStream>, Status> {
        let spec = check(SubscribeSpec::new(request.into_inner()))?;
        let (handle, calls) = (self.handle.clone(), self.calls.clone());
        let subscriber = check(Subscriber::new(spec, handle, calls).await)?;
        let runtime = tokio::runtime::Handle::current();
        self.feed("nrt-follow", move |parts| subscriber.feed(parts, runtime))
    }

    async fn commit(
        &self,
        request: Request<v1::CommitRequest>,
    ) -> Result<Response<v1::CommitResponse>, Status> {
        let fetch_id = request.into_inner().fetch_id;
        check(
            self.handle
                .ask(|reply| Command::Commit(fetch_id, reply))
                .await,
        )?;
        Ok(Response::new(v1::CommitResponse {}))
    }

    async fn get_status(
        &self,
        _request: Request<v1::GetStatusRequest>,
    ) -> Result<Response<v1::GetStatusResponse>, Status> {
        let mut answer = check(self.handle.ask(Command::Status).await)?;
        status::fill_process(&mut answer);
        Ok(Response::new(answer))
    }

    async fn list_producers(
        &self,
        request: Request<v1::ListProducersRequest>,
    ) -> Result<Response<v1::ListProducersResponse>, Status> {
        let token = check(request.into_inner().token.map(token).transpose())?;
        let producers = check(
            self.handle
                .ask(|reply| Command::Producers(token, reply))
                .await,
        )?;
        Ok(Response::new(fit::producers(producers)))
    }

    async fn get_metrics(
        &self,
        _request: Request<v1::GetMetricsRequest>,
    ) -> Result<Response<Self::GetMetricsStream>, Status> {
        let text = self.source().text().await?;
        Ok(Response::new(tokio_stream::iter(metrics::pieces(&text))))
    }

    async fn list_event_types(
        &self,
        _request: Request<v1::ListEventTypesRequest>,
    ) -> Result<Response<v1::ListEventTypesResponse>, Status> {
        let types = EventType::ALL
            .into_iter()
            .map(|event| v1::EventType {
                value: event.value(),
                name: event.name().to_owned(),
                aliases: event
                    .aliases()
                    .iter()
                    .map(|&alias| alias.to_owned())
                    .collect(),
                category: match event.category() {
                    Category::Hardware => v1::EventCategory::Hardware,
                    Category::Software => v1::EventCategory::Software,
                    Category::Unknown => v1::EventCategory::Unspecified,
                }
                .into(),
            })
            .collect();
        Ok(Response::new(v1::ListEventTypesResponse { types }))
    }

    async fn get_strings(
        &self,
        request: Request<v1::GetStringsRequest>,
    ) -> Result<Response<v1::GetStringsResponse>, Status> {
        strings::get(&self.handle, request.into_inner())
            .await
            .map(Response::new)
    }

    async fn start_host(
        &self,
        request: Request<v1::StartHostRequest>,
    ) -> Result<Response<v1::StartHostResponse>, Status> {
        host::start(&self.host, request.into_inner())
    }

    async fn stop_host(
        &self,
        _request: Request<v1::StopHostRequest>,
    ) -> Result<Response<v1::StopHostResponse>, Status> {
        Ok(host::stop(&self.host))
    }

    async fn get_host_stats(
        &self,
        request: Request<v1::GetHostStatsRequest>,
    ) -> Result<Response<v1::GetHostStatsResponse>, Status> {
        Ok(host::get(&self.host, request.into_inner()))
    }

    async fn watch_host_stats(
        &self,
        request: Request<v1::WatchHostStatsRequest>,
    ) -> Result<Response<Self::WatchHostStatsStream>, Status> {
        let ticks = host::watch(&self.host, request.into_inner())?;
        Ok(Response::new(self.ending.ends(ticks)))
    }
}
