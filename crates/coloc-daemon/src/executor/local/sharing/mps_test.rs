//! Control daemons that a script stands in for.

use super::*;

/// A control program that takes its time and remembers what it was told. Its server is this process.
fn slow(place: &Path) -> Program {
    let own = std::process::id();
    let script = format!(
        r#"#!/bin/sh
sleep 0.4
pipe="$CUDA_MPS_PIPE_DIRECTORY"
if [ "$1" = "-d" ]; then echo {own} > "$pipe/nvidia-cuda-mps-control.pid"; touch "$pipe/told"; exit 0; fi
[ -e "$pipe/told" ] || exit 1
while read line; do
  echo "$line" >> "$pipe/told"
  case "$line" in
get_server_list) echo {own};;
get*thread_percentage*) echo 100;;
get_device_pinned_mem_limit*) grep '^set_device' "$pipe/told" | tail -1 | cut -d' ' -f4;;
  esac
done
"#
    );
    program(&place.join("control"), &script)
}

/// One that says nothing.
fn silent(place: &Path) -> Program {
    program(&place.join("silent"), "#!/bin/sh\nexec sleep 600\n")
}

fn program(file: &Path, script: &str) -> Program {
    std::fs::write(file, script).unwrap();
    std::fs::set_permissions(file, Permissions::from_mode(0o755)).unwrap();
    Program(file.to_owned())
}

#[test]
fn whoever_is_slow_is_waited_for_by_nobody_and_ready_in_the_end() {
    let place = tempfile::tempdir().unwrap();
    let mut mps = Mps::new(place.path().to_owned());
    mps.program = slow(place.path());
    let limits = ClientLimits { memory: Some(Bytes::from_mib(4096)), ..ClientLimits::NONE };
    let newcomer = Newcomer {
        owner: Uid(rustix::process::geteuid().as_raw()),
        gpus: &[Uuid::new("GPU-1b2c3d4e-00")],
        limits,
        others: &[],
        whole: Bytes::from_mib(40_960),
    };
    let (ring, rings) = std::sync::mpsc::channel();
    mps.ring(move || ring.send(()).unwrap());
    let admit = |newcomer: &Newcomer<'_>, mps: &mut Mps| {
        let first = mps.admit(newcomer);
        assert!(matches!(first, Err(SharingError::NotYet)), "{first:?}");
        rings.recv_timeout(Duration::from_secs(60)).unwrap();
        mps.admit(newcomer)
    };
    let admitted = admit(&newcomer, &mut mps).unwrap();
    assert_eq!(admitted.server_memory, limits.memory);
    assert_eq!(admitted.unlimited, None);
    assert_eq!(admitted.server.pid, std::process::id());
    // What it knows it is not told again.
    mps.program = Program(place.path().join("nothing"));
    assert_eq!(mps.admit(&newcomer).unwrap(), admitted);
    assert!(!mps.has_lost(newcomer.owner, newcomer.gpus, admitted.server));
    // A control daemon that falls silent keeps no task from its server.
    mps.program = silent(place.path());
    let larger = ClientLimits { memory: Some(Bytes::from_mib(8192)), ..limits };
    let newcomer = Newcomer { limits: larger, ..newcomer };
    for _ in 0..2 {
        let told = match mps.silent.is_empty() {
            true => admit(&newcomer, &mut mps),
            false => mps.admit(&newcomer),
        };
        let told = told.unwrap();
        assert_eq!((told.server, told.server_memory), (admitted.server, None));
        assert!(told.unlimited.is_some_and(|why| why.contains("did not answer")));
    }
    let elsewhere = Newcomer { gpus: &[Uuid::new("GPU-9b2c3d4e-00")], ..newcomer.clone() };
    let told = admit(&elsewhere, &mut mps);
    assert!(matches!(told, Err(SharingError::Mps(MpsError::TimedOut { .. }))), "{told:?}");
    assert!(matches!(mps.admit(&elsewhere), Err(SharingError::Silent { .. })));
    let replaced = Process { began: 0, ..admitted.server };
    assert!(mps.has_lost(newcomer.owner, newcomer.gpus, replaced));
}
