//! A metrics endpoint with the names and labels of dcgm-exporter.

use super::fields::{FIELDS, first_of_each, value};
use coloc_emu::fleet::State;
use coloc_emu::{AttachError, DriverError, Emulator, Place};
use std::fmt::Write as _;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::time::Duration;

/// The endpoint could not be served.
#[derive(Debug, thiserror::Error)]
pub enum ExporterError {
    /// No fleet.
    #[error(transparent)]
    Attach(#[from] AttachError),
    /// The address cannot be listened on.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// Where.
        address: String,
        /// What the system said.
        source: io::Error,
    },
}

/// A scrape that takes longer is given up.
const TIMEOUT: Duration = Duration::from_secs(5);
/// A client that has its answer hangs up within this time.
const LINGER: Duration = Duration::from_secs(2);
/// No client's request is longer.
const LONGEST_REQUEST: u64 = 16 << 10;

/// Serves `/metrics` until the process is ended. `ready` is told the address that it got.
pub fn serve(address: &str, ready: impl FnOnce(String)) -> Result<(), ExporterError> {
    let fail = |source| ExporterError::Listen { address: address.to_owned(), source };
    let emulator = Arc::new(Emulator::from_environment()?);
    let listener = TcpListener::bind(address).map_err(fail)?;
    ready(listener.local_addr().map_err(fail)?.to_string());
    for stream in listener.incoming().flatten() {
        let emulator = emulator.clone();
        // One client's trouble is not the next one's, nor is its timeout.
        let serve = move || respond(stream, &emulator);
        let _ = std::thread::Builder::new().name("scrape".to_owned()).spawn(serve);
    }
    Ok(())
}

fn respond(mut stream: TcpStream, emulator: &Emulator) -> io::Result<()> {
    stream.set_read_timeout(Some(TIMEOUT))?;
    stream.set_write_timeout(Some(TIMEOUT))?;
    let mut reader = BufReader::new(stream.try_clone()?.take(LONGEST_REQUEST));
    let mut request = String::new();
    reader.read_line(&mut request)?;
    let mut header = String::new();
    while reader.read_line(&mut header)? > 2 {
        header.clear();
    }
    let path = request.split_whitespace().nth(1).unwrap_or("/");
    let (status, body) = match path {
        "/metrics" => match metrics(emulator) {
            Ok(text) => ("200 OK", text),
            Err(error) => ("503 Service Unavailable", error),
        },
        "/health" => ("200 OK", "OK\n".to_owned()),
        _ => ("404 Not Found", "see /metrics\n".to_owned()),
    };
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes())?;
    stream.write_all(body.as_bytes())?;
    close_gently(stream)
}

/// A socket that is closed with something unread resets the connection, and the other side may lose the answer: so what
/// else was sent is read and thrown away first.
fn close_gently(stream: TcpStream) -> io::Result<()> {
    stream.shutdown(Shutdown::Write)?;
    stream.set_read_timeout(Some(LINGER))?;
    io::copy(&mut stream.take(LONGEST_REQUEST), &mut io::sink()).map(drop)
}

fn metrics(emulator: &Emulator) -> Result<String, String> {
    let state = emulator.lock().map_err(|error| error.to_string())?;
    render(&state).map_err(|error| error.to_string())
}

/// All series of one moment.
fn render(state: &State) -> Result<String, DriverError> {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let host = host.trim().replace(['"', '\\', '\n'], "");
    let mut series: Vec<(Place, String)> = Vec::new();
    for (index, gpu) in (0u32..).zip(state.gpus()) {
        if gpu.is_lost() {
            continue;
        }
        let bus = gpu.bus_id(index);
        let common = format!(
            "gpu=\"{index}\",UUID=\"{}\",pci_bus_id=\"{bus}\",device=\"nvidia{index}\",modelName=\"{}\"",
            gpu.uuid(),
            gpu.board().name
        );
        let devices = first_of_each(gpu);
        if !gpu.mig_enabled() || devices.is_empty() {
            series.push((Place::whole(index), format!("{common},Hostname=\"{host}\"")));
        }
        for mig in devices {
            let profile = gpu.instance_view(mig.gi)?.profile.name();
            let labels = format!(
                "{common},GPU_I_PROFILE=\"{profile}\",GPU_I_ID=\"{}\",Hostname=\"{host}\"",
                mig.gi
            );
            series.push((Place { gpu: index, mig: Some(mig) }, labels));
        }
    }
    let mut text = String::new();
    for field in &FIELDS {
        let name = format!("DCGM_FI_{}", field.metric);
        let mut lines = String::new();
        for (place, labels) in &series {
            // A board's own sensors are shown with each of its instances, as the exporter does.
            let place = if field.of_instances { *place } else { Place::whole(place.gpu) };
            if let Some(value) = value(state, place, field.id, None)? {
                // Writing to a string cannot fail.
                let _ = writeln!(lines, "{name}{{{labels}}} {value}");
            }
        }
        if !lines.is_empty() {
            let _ =
                write!(text, "# HELP {name} {}\n# TYPE {name} {}\n{lines}", field.help, field.kind);
        }
    }
    Ok(text)
}
