//! `coloc demo`: the main job in a minute, with nothing to set up.

use crate::args::physics::PhysicsArgs;
use crate::error::CliError;
use crate::live::emulated_daemon::EmulatedDaemon;
use crate::live::live_table::{Side, draw};
use crate::live::replay::{Replay, Replayed};
use crate::output::table::table;
use crate::output::terminal::width;
use crate::output::{comparison, files, print_text};
use crate::parse::named_policy;
use crate::report;
use crate::verbs::compare;
use clap::Args;
use coloc_api::request::WebCodeRequest;
use coloc_api::view::{GpuView, Scope, TaskView};
use coloc_model::{Fleet, TaskState};
use coloc_sim::{Simulation, Trace, trace};
use std::io::IsTerminal as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const FLEET: &str = "4xA100-40GB";
/// Each manager with its own estimator, and with the measured memory.
const POLICIES: [&str; 5] =
    ["exclusive", "carma-v2:gpumemnet", "coloc:replay", "carma-v2:oracle", "coloc:oracle"];
/// Tasks of the trace that are played live.
const TASKS: usize = 30;
/// Four hours in three quarters of a minute.
const TIME_SCALE: f64 = 340.0;
/// How often the board is drawn.
const FRAME: Duration = Duration::from_millis(250);

/// See what collocation does for a shared server: real processes on emulated GPUs, two daemons side by side
#[derive(Args, Debug)]
pub(crate) struct Demo {
    /// Where to write the page with all plots
    #[arg(long, value_name = "OUT.html", default_value = "coloc-demo.html")]
    html: PathBuf,
    /// Only simulate the whole trace, which takes a second
    #[arg(long)]
    simulated: bool,
    /// Also serve the dashboards of both daemons; they stay until Ctrl-C
    #[arg(long, conflicts_with = "simulated")]
    web: bool,
}

impl Demo {
    pub(crate) fn run(self) -> Result<(), CliError> {
        if !self.simulated {
            live(self.web)?;
        }
        self.simulate()
    }

    fn simulate(self) -> Result<(), CliError> {
        let fleet: Fleet = FLEET.parse()?;
        let trace = trace::mix90();
        let policies: Vec<_> =
            POLICIES.iter().map(|text| named_policy::parse(text)).collect::<Result<_, _>>()?;
        print_text(
            "The whole trace, simulated: a server with four A100-40GB, and 90 training tasks\n\
             that arrive over three and a half hours (CARMA's mixed trace).\n",
        )?;
        let adjust = |simulation: &mut Simulation| PhysicsArgs::default().apply(simulation, &trace);
        let runs = compare::play(&policies, &trace, &fleet, adjust, true)?;
        let name = "the 90-task trace";
        print_text(&comparison::render(name, &fleet, &runs))?;
        let page = report::compare_page(&compare::page(name, &trace, &fleet, &runs));
        files::write(&self.html, |output| output.write_all(page.as_bytes()))?;
        print_text(&format!(
            "\nexclusive is one task a GPU; carma-v2 is the published collocating manager, coloc\n\
             is ours. Each goes by its own estimates of memory (gpumemnet, replay) and, as\n\
             oracle, by the measured memory, which no manager knows. Nothing here was\n\
             measured: the model behind it, and how far it agrees with published results, is\n\
             in docs/physics.md.\n\n\
             Gantt charts, SM activity, memory and power over time: {}",
            self.html.display()
        ))
    }
}

/// A daemon with the trace that is played on it.
struct Player<'a> {
    daemon: EmulatedDaemon,
    replay: Replay<'a>,
    tasks: Vec<TaskView>,
    gpus: Vec<GpuView>,
    smact: (f64, u32),
    /// What its GPUs had used when its last task ended.
    energy: Option<f64>,
}

impl Player<'_> {
    /// Submits what is due and looks; says whether all is done.
    fn step(&mut self) -> Result<bool, CliError> {
        let more = self.replay.step(&mut self.daemon.client)?.is_some();
        self.tasks = self.replay.tasks(&mut self.daemon.client)?;
        self.gpus = self.daemon.gpus()?;
        let done = !more && self.tasks.iter().all(|task| task.state.is_over());
        if done && self.energy.is_none() {
            self.energy = self.daemon.energy();
        }
        if !done {
            let mean =
                self.gpus.iter().map(|gpu| gpu.smact).sum::<f64>() / self.gpus.len().max(1) as f64;
            self.smact = (self.smact.0 + mean, self.smact.1 + 1);
        }
        Ok(done)
    }
}

/// Two daemons, real processes, emulated GPUs.
fn live(web: bool) -> Result<(), CliError> {
    print_text(&format!(
        "Two servers with four emulated A100-40GB each, and the same {TASKS} training\n\
         tasks: real processes that allocate, iterate and finish, {TIME_SCALE} times as fast\n\
         as in life. On the left each task gets GPUs of its own, on the right coloc lets\n\
         them share. Ctrl-C ends it.{}\n",
        if web { "" } else { " `coloc demo --web` shows both in a browser." }
    ))?;
    let place = std::env::temp_dir().join(format!("coloc-demo-{}", std::process::id()));
    let outcome = play(&place, web);
    let _ = std::fs::remove_dir_all(&place);
    outcome
}

fn play(place: &std::path::Path, web: bool) -> Result<(), CliError> {
    let whole = trace::mix90();
    let tasks = whole.tasks()[..TASKS].to_vec();
    let slice = Trace::new(tasks, whole.names().clone(), whole.users().clone());
    let interrupted = Arc::new(AtomicBool::new(false));
    for signal in [2, 15] {
        let _ = crate::signals::note_signal(signal, &interrupted);
    }
    let open = |name, policy: &[&str]| {
        // Any port that is free.
        let page: &[&str] = if web { &["--web", "127.0.0.1:0"] } else { &[] };
        let options = [policy, page].concat();
        EmulatedDaemon::open(place, name, FLEET, TIME_SCALE, &options)
    };
    let alone = open(
        "one task a GPU",
        &["--queue", "fifo", "--place", "exclusive", "--share", "exclusive"],
    )?;
    let shared = match open("shared by coloc", &["--preset", "coloc"]) {
        Ok(shared) => shared,
        Err(error) => {
            let _ = alone.close();
            return Err(error);
        }
    };
    let side = |daemon| Player {
        daemon,
        replay: Replay::new(&slice, TIME_SCALE),
        tasks: Vec::new(),
        gpus: Vec::new(),
        smact: (0.0, 0),
        energy: None,
    };
    let mut sides = [side(alone), side(shared)];
    let shown = if web { show_pages(&mut sides) } else { Ok(()) };
    let watched = shown.and_then(|()| watch(&mut sides, &interrupted));
    if web && watched.is_ok() && !interrupted.load(Ordering::Relaxed) {
        print_text("\nAll is done. The dashboards stay as they are until Ctrl-C.")?;
        while !interrupted.swap(false, Ordering::Relaxed) {
            std::thread::sleep(FRAME);
        }
    }
    let results = sides.map(|side| {
        let result = (side.daemon.name, side.replay.sum_up(&side.tasks), side.smact, side.energy);
        let recovered =
            side.tasks.iter().filter(|t| t.ooms > 0 && t.state == TaskState::Completed).count();
        let _ = side.daemon.close();
        (result, recovered)
    });
    watched?;
    if interrupted.load(Ordering::Relaxed) {
        return Err(CliError::Refused("interrupted; everything was stopped".to_owned()));
    }
    print_text(&conclusion(&results))
}

/// Says where both dashboards are, signed in.
fn show_pages(sides: &mut [Player<'_>; 2]) -> Result<(), CliError> {
    for side in &mut *sides {
        let code = side.daemon.client.web_code(&WebCodeRequest { scope: Scope::Act })?;
        print_text(&format!("{:<16} {}", side.daemon.name, code.url))?;
    }
    print_text("Each link works once, within a minute. For another one:")?;
    for side in sides {
        let socket = side.daemon.socket().display().to_string();
        let socket = coloc_api::text::shell_quoted(socket.as_bytes());
        print_text(&format!(
            "  coloc web --act --print --socket {}",
            String::from_utf8_lossy(&socket)
        ))?;
    }
    print_text("")
}

/// Plays both sides, drawing the board again and again.
fn watch(sides: &mut [Player<'_>; 2], interrupted: &AtomicBool) -> Result<(), CliError> {
    let terminal = std::io::stdout().is_terminal();
    let (mut drawn, mut last) = (0, Instant::now());
    loop {
        let [alone, shared] = &mut *sides;
        let done = alone.step()? & shared.step()?;
        let view = |side: &Player<'_>| -> String { side.daemon.name.to_owned() };
        let names = [view(&sides[0]), view(&sides[1])];
        let live_table = |index: usize| Side {
            name: &names[index],
            tasks: &sides[index].tasks,
            gpus: &sides[index].gpus,
            expected: TASKS,
        };
        // Elsewhere than on a terminal, a look now and then is enough.
        if terminal || done || last.elapsed() > Duration::from_secs(10) || drawn == 0 {
            let text = draw(&live_table(0), &live_table(1), width());
            let up =
                if terminal && drawn > 0 { format!("\x1b[{drawn}A\x1b[J") } else { String::new() };
            drawn = text.lines().count() + 1;
            last = Instant::now();
            print_text(&format!("{up}{text}"))?;
        }
        if done || interrupted.load(Ordering::Relaxed) {
            return Ok(());
        }
        std::thread::sleep(FRAME);
    }
}

type Outcome = ((&'static str, Replayed, (f64, u32), Option<f64>), usize);

fn conclusion(results: &[Outcome; 2]) -> String {
    let minutes = |seconds: f64| format!("{:.0} min", seconds / 60.0);
    let row = |name: &str, of: &dyn Fn(&Outcome) -> String| {
        vec![name.to_owned(), of(&results[0]), of(&results[1])]
    };
    let rows = [
        row("makespan", &|((_, r, ..), _)| minutes(r.makespan_s)),
        row("mean completion time", &|((_, r, ..), _)| minutes(r.jct_mean_s)),
        row("mean wait", &|((_, r, ..), _)| minutes(r.wait_mean_s)),
        row("completed", &|((_, r, ..), _)| format!("{} of {}", r.completed, r.tasks)),
        row("out of memory, recovered", &|((_, r, ..), recovered)| {
            format!("{}, {recovered}", r.oom_count)
        }),
        row("SM activity", &|((_, _, (sum, looks), _), _)| {
            format!("{:.0} %", 100.0 * sum / f64::from(*looks).max(1.0))
        }),
        row("energy", &|((.., joules), _)| {
            joules.map_or("-".to_owned(), |joules| format!("{:.2} kWh", joules / 3.6e6))
        }),
    ];
    let names = ["", results[0].0.0, results[1].0.0];
    format!(
        "{}\n\nTimes are the tasks' own. The processes were real, the GPUs emulated:\n\
         docs/emulation.md. To go on:\n\
         \x20 coloc daemon --emulate 4xA100-40GB &  # where there are GPUs, without --emulate\n\
         \x20 coloc submit --gpu-mem 8G -- python train.py\n\
         \x20 coloc queue; coloc why last; coloc logs -f last\n",
        table(&names, rows)
    )
}
