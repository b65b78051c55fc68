//! Every route, with what it takes and answers. What is served and what the document says come from this one table.

use super::{
    ApiState, config, events, expected, frames, list, log, metrics, openapi, past, report, series,
    tasks, timeline, tokens, web, whatif,
};
use axum::handler::Handler;
use axum::routing::{self, MethodRouter};
use coloc_api::answer::{
    Changed, ConfigInForce, Draining, Foreseen, Gpus, Listed, Reload, Served, Submitted, Taught,
    TokenList, TokenMade, Versioned, WebCode, WebSession,
};
use coloc_api::past::Past;
use coloc_api::report::{HistoryRequest, Report, ReportRequest, TaskHistory};
use coloc_api::request::{
    AttachRequest, ChangeRequest, EventsRequest, ExecRequest, GpuReservation, GpuService,
    ListRequest, LogRequest, PastRequest, SavingsRequest, SeriesRequest, Submission, Teaching,
    TimelineRequest, TokenRequest, WebCodeRequest, WebSessionRequest, WhatifRequest,
};
use coloc_api::view::{
    EventData, Expected, JobView, SavingsAnswer, SeriesAnswer, StatusView, TaskDetail,
    TimelineAnswer, TokenView, WhatifAnswer, WhyView,
};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use std::sync::Arc;

/// A route.
pub(super) struct Route {
    pub(super) path: &'static str,
    pub(super) method: &'static str,
    /// Its name in generated clients.
    pub(super) id: &'static str,
    pub(super) does: &'static str,
    pub(super) query: Option<Shape>,
    pub(super) body: Option<Shape>,
    pub(super) answer: (&'static str, Option<Shape>),
    /// What is answered is a connection that speaks frames.
    pub(super) upgrades: bool,
    /// What is answered (202) while the answer is worked out.
    pub(super) later: Option<Shape>,
    /// A caller who may only look is refused.
    pub(super) acts: bool,
    pub(super) handler: MethodRouter<Arc<ApiState>>,
}

/// Describes a type.
pub(super) type Shape = fn(&mut SchemaGenerator) -> Schema;

const JSON: &str = "application/json";

impl Route {
    fn get<T: 'static>(
        path: &'static str,
        id: &'static str,
        handler: impl Handler<T, Arc<ApiState>>,
    ) -> Self {
        Route::new("get", path, id, routing::get(handler))
    }

    fn post<T: 'static>(
        path: &'static str,
        id: &'static str,
        handler: impl Handler<T, Arc<ApiState>>,
    ) -> Self {
        Route::new("post", path, id, routing::post(handler))
    }

    fn new(
        method: &'static str,
        path: &'static str,
        id: &'static str,
        handler: MethodRouter<Arc<ApiState>>,
    ) -> Self {
        let (does, answer) = ("", (JSON, None));
        let (upgrades, acts) = (false, method != "get");
        let (query, body, later) = (None, None, None);
        Route { path, method, id, does, query, body, answer, upgrades, later, acts, handler }
    }

    /// It is asked by POST, but changes nothing.
    fn reads(self) -> Self {
        Route { acts: false, ..self }
    }

    fn does(self, does: &'static str) -> Self {
        Route { does, ..self }
    }

    fn asks<Q: JsonSchema>(self) -> Self {
        Route { query: Some(|generator| generator.subschema_for::<Q>()), ..self }
    }

    fn takes<B: JsonSchema>(self) -> Self {
        Route { body: Some(|generator| generator.subschema_for::<B>()), ..self }
    }

    fn answers<A: JsonSchema>(self) -> Self {
        self.answers_as::<A>(JSON)
    }

    fn answers_as<A: JsonSchema>(self, kind: &'static str) -> Self {
        Route { answer: (kind, Some(|generator| generator.subschema_for::<A>())), ..self }
    }

    fn upgrades(self) -> Self {
        Route { upgrades: true, acts: true, ..self }
    }

    fn answers_later<A: JsonSchema>(self) -> Self {
        Route { later: Some(|generator| generator.subschema_for::<A>()), ..self }
    }

    fn answers_bytes(self, kind: &'static str) -> Self {
        Route { answer: (kind, None), ..self }
    }
}

/// Every route.
pub(super) fn routes() -> Vec<Route> {
    let all = [tasks_routes(), over_time_routes(), daemon_routes(), access_routes()];
    all.into_iter().flatten().collect()
}

/// What happens, happened, is expected to happen, and would have happened.
fn over_time_routes() -> Vec<Route> {
    vec![
        Route::get("/v1/events", "watchEvents", events::stream)
            .does("What happens, as server-sent events with ids: first `hello`, then `task`, `sample`, `status` and `decision` as asked for, \
                and `missed` if too much happened to be told; `Last-Event-ID` has what was missed said again")
            .asks::<EventsRequest>()
            .answers_as::<EventData>("text/event-stream"),
        Route::get("/v1/expected", "expectTasks", expected::all)
            .does("When each task is expected to start and to end, if nothing else is submitted")
            .answers::<Foreseen>(),
        Route::get("/v1/series", "readSeries", series::read)
            .does("What was measured of GPUs and tasks over time, in columns")
            .asks::<SeriesRequest>()
            .answers::<SeriesAnswer>(),
        Route::get("/v1/timeline", "readTimeline", timeline::read)
            .does("What ran where and when, what runs, and what is expected to")
            .asks::<TimelineRequest>()
            .answers::<TimelineAnswer>(),
        Route::post("/v1/whatif", "askWhatif", whatif::begin)
            .reads()
            .does("What would have been under other policies or on other GPUs; 202 with a job while it is worked out: ask again")
            .takes::<WhatifRequest>()
            .answers::<WhatifAnswer>()
            .answers_later::<JobView>(),
        Route::get("/v1/whatif/{job}", "lookAtWhatif", whatif::look)
            .does("The answer of a job, or 202 while it is worked out")
            .answers::<WhatifAnswer>()
            .answers_later::<JobView>(),
        Route::get("/v1/savings", "showSavings", whatif::savings)
            .does("What sharing saved against one task a GPU, and what it cost; 202 with a job while it is worked out: ask again")
            .asks::<SavingsRequest>()
            .answers::<SavingsAnswer>()
            .answers_later::<JobView>(),
        Route::get("/v1/past", "readPast", past::read)
            .does("What ran, as a simulation needs it")
            .asks::<PastRequest>()
            .answers::<Past>(),
        Route::get("/v1/report", "reportUsage", report::read)
            .does("What was promised and used of the GPUs, by user, group, GPU or day")
            .asks::<ReportRequest>()
            .answers::<Report>(),
        Route::get("/v1/history", "readHistory", report::history)
            .does("The newest ended tasks, with what each used")
            .asks::<HistoryRequest>()
            .answers::<TaskHistory>(),
    ]
}

/// The daemon, its GPUs and its settings.
fn daemon_routes() -> Vec<Route> {
    vec![
        Route::post("/v1/teach", "teach", super::teach)
            .does("Have the scheduler believe what was measured of a command; for administrators")
            .takes::<Teaching>()
            .answers::<Versioned<Taught>>(),
        Route::get("/v1/gpus", "listGpus", super::gpus)
            .does("The GPUs as the scheduler sees them")
            .answers::<Gpus>(),
        Route::post("/v1/gpus/service", "serveGpus", super::serve_gpus)
            .does("Have GPUs take nothing new, or tasks again; for administrators")
            .takes::<GpuService>()
            .answers::<Served>(),
        Route::post("/v1/gpus/reserve", "reserveGpus", super::reserve_gpus)
            .does("Have GPUs take only the tasks of some users, or of all again; for administrators")
            .takes::<GpuReservation>()
            .answers::<Served>(),
        Route::get("/v1/status", "showStatus", super::status)
            .does("How the daemon is")
            .answers::<Versioned<StatusView>>(),
        Route::post("/v1/drain", "drain", super::drain)
            .does("Start nothing new (true), or go on (false); for administrators")
            .takes::<bool>()
            .answers::<Versioned<Draining>>(),
        Route::get("/v1/config", "showConfig", config::show)
            .does("The settings in force that were chosen, and where")
            .answers::<ConfigInForce>(),
        Route::post("/v1/config/reload", "reloadConfig", config::reload)
            .does("Read the configuration again; a wrong one is refused and the old one stays; for administrators")
            .answers::<Reload>(),
        Route::get("/metrics", "readMetrics", metrics::page)
            .does("What is counted and measured, for Prometheus: its text form, or OpenMetrics where that is accepted")
            .answers_bytes("text/plain"),
        Route::get("/openapi.json", "describe", openapi::serve)
            .does("This document")
            .answers_bytes(JSON),
    ]
}

/// Tokens, and signing in.
fn access_routes() -> Vec<Route> {
    vec![
        Route::get("/v1/tokens", "listTokens", tokens::list)
            .does("The caller's tokens, or for an administrator everybody's")
            .answers::<TokenList>(),
        Route::post("/v1/tokens", "createToken", tokens::create)
            .does("Make a token for the network; over the socket only")
            .takes::<TokenRequest>()
            .answers::<TokenMade>(),
        Route::post("/v1/tokens/{id}/revoke", "revokeToken", tokens::revoke)
            .does("Make a token useless")
            .answers::<Versioned<TokenView>>(),
        Route::post("/v1/web/code", "makeWebCode", web::code)
            .does(
                "A code with which a page signs in, once and within a minute; over the socket only",
            )
            .takes::<WebCodeRequest>()
            .answers::<WebCode>(),
        Route::post(web::SESSION, "signIn", web::session)
            .reads()
            .does("A token for the code that `coloc web` got; no token is needed to ask")
            .takes::<WebSessionRequest>()
            .answers::<WebSession>(),
    ]
}

fn tasks_routes() -> Vec<Route> {
    vec![
        Route::get("/v1/tasks", "listTasks", list::list)
            .does("Tasks; with `accept: text/tab-separated-values` a table")
            .asks::<ListRequest>()
            .answers::<Listed>(),
        Route::post("/v1/tasks", "submitTasks", tasks::submit)
            .does("Submit a task or an array of them; they are on the disk when this is answered")
            .takes::<Submission>()
            .answers::<Submitted>(),
        Route::post("/v1/tasks/change", "changeTasks", tasks::change)
            .does("Cancel, hold, release, requeue or update tasks")
            .takes::<ChangeRequest>()
            .answers::<Changed>(),
        Route::get("/v1/tasks/{id}", "showTask", tasks::show)
            .does("Everything that is known of a task")
            .answers::<Versioned<TaskDetail>>(),
        Route::get("/v1/tasks/{id}/why", "explainTask", tasks::why)
            .does("What keeps a task waiting, GPU by GPU")
            .answers::<Versioned<WhyView>>(),
        Route::get("/v1/tasks/{id}/expected", "expectTask", expected::one)
            .does("When a task is expected to start and to end, if nothing else is submitted")
            .answers::<Versioned<Expected>>(),
        Route::get("/v1/tasks/{id}/wait", "waitForTask", events::wait)
            .does("Answers when the task has ended, or after 50 s with how it stands: ask again")
            .answers::<Versioned<TaskDetail>>(),
        Route::get("/v1/tasks/{id}/log", "readLog", log::read)
            .does("A part of the task's output; the header `x-state` says where the task stands")
            .asks::<LogRequest>()
            .answers_bytes("application/octet-stream"),
        Route::get("/v1/tasks/{id}/attach", "attachToTask", frames::attach)
            .does("The task's terminal, for its owner; upgrades to `coloc-frames`")
            .asks::<AttachRequest>()
            .upgrades(),
        Route::post("/v1/tasks/{id}/exec", "execInTask", frames::exec)
            .does("Run a command inside the task's allocation, for its owner; upgrades to `coloc-frames`")
            .takes::<ExecRequest>()
            .upgrades(),
        Route::get("/v1/tasks/{id}/input", "feedTask", frames::input)
            .does("Send the task's standard input, for its owner; upgrades to `coloc-frames`")
            .upgrades(),
    ]
}
