//! The driver on a thread of its own, with a deadline: NVML calls can hang, and the owner must never be blocked.

use super::{Driver, DriverError};
use coloc_model::Millis;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Makes a connection to the driver; called again after the driver was reloaded.
pub type Connect = Box<dyn Fn() -> Result<Box<dyn Driver>, DriverError> + Send>;

type Question = Box<dyn FnOnce(&mut Connection) + Send>;

/// A driver that answers in time or not at all.
///
/// There is one thread: most hangs are in a lock that a second thread would meet too. While a question
/// is stuck, others are refused at once with [`DriverError::Hung`]; when the driver comes back, so does
/// this.
#[derive(Debug)]
pub struct Guarded {
    questions: mpsc::Sender<Question>,
    /// Callers take turns.
    turn: Mutex<()>,
    /// The last question is not answered yet.
    stuck: Arc<AtomicBool>,
    deadline: Duration,
}

/// The connection as the thread holds it.
struct Connection {
    connect: Connect,
    driver: Option<Box<dyn Driver>>,
}

impl Connection {
    fn ask<T>(
        &mut self,
        question: impl FnOnce(&mut dyn Driver) -> Result<T, DriverError>,
    ) -> Result<T, DriverError> {
        let driver = match &mut self.driver {
            Some(driver) => driver,
            none => none.insert((self.connect)()?),
        };
        let answer = question(driver.as_mut());
        if matches!(&answer, Err(error) if error.wants_reconnect()) {
            self.driver = None;
        }
        answer
    }
}

impl Guarded {
    /// Starts the thread. The driver is connected to when the first question is asked.
    pub fn new(connect: Connect, deadline: Duration) -> Self {
        let (questions, inbox) = mpsc::channel::<Question>();
        let serve = move || {
            let mut connection = Connection { connect, driver: None };
            for question in inbox {
                question(&mut connection);
            }
        };
        // Without a thread the inbox is gone, and every question is answered with an error.
        let _ = std::thread::Builder::new().name("gpu-driver".to_owned()).spawn(serve);
        let stuck = Arc::new(AtomicBool::new(false));
        Guarded { questions, turn: Mutex::new(()), stuck, deadline }
    }

    /// NVML as the system has it.
    pub fn nvml(deadline: Duration) -> Self {
        Guarded::new(Box::new(super::nvml::connect), deadline)
    }

    /// Asks, and waits for the answer until the deadline.
    pub fn ask<T: Send + 'static>(
        &self,
        question: impl FnOnce(&mut dyn Driver) -> Result<T, DriverError> + Send + 'static,
    ) -> Result<T, DriverError> {
        self.run(move |connection| connection.ask(question))
    }

    /// Lets go of the driver, so that the next question finds the devices that came since.
    pub fn reconnect(&self) -> Result<(), DriverError> {
        self.run(|connection| {
            connection.driver = None;
            Ok(())
        })
    }

    fn run<T: Send + 'static>(
        &self,
        question: impl FnOnce(&mut Connection) -> Result<T, DriverError> + Send + 'static,
    ) -> Result<T, DriverError> {
        // Nothing is kept under this lock that a panic could spoil.
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        if self.stuck.swap(true, Ordering::AcqRel) {
            return Err(DriverError::Hung);
        }
        let stuck = Arc::clone(&self.stuck);
        let (reply, answer) = mpsc::sync_channel(1);
        let question: Question = Box::new(move |connection| {
            let outcome = question(connection);
            stuck.store(false, Ordering::Release);
            // The caller waits no longer if the deadline has passed.
            let _ = reply.send(outcome);
        });
        if self.questions.send(question).is_err() {
            return Err(DriverError::Other {
                what: "asking the driver",
                detail: "its thread is gone".to_owned(),
            });
        }
        match answer.recv_timeout(self.deadline) {
            Ok(outcome) => outcome,
            Err(mpsc::RecvTimeoutError::Timeout) => {
                Err(DriverError::TimedOut { after: Millis(self.deadline.as_millis() as u64) })
            }
            Err(mpsc::RecvTimeoutError::Disconnected) => Err(DriverError::Other {
                what: "asking the driver",
                detail: "its thread ended in the middle of the question".to_owned(),
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::driver::scripted::Scripted;
    use std::time::Instant;

    #[test]
    fn a_hung_driver_does_not_block_its_owner() {
        let scripted = Scripted::with_gpus(1);
        let driver = Guarded::new(scripted.connect(), Duration::from_millis(50));
        assert_eq!(driver.ask(|driver| driver.count()), Ok(1));
        let release = scripted.hang();
        let began = Instant::now();
        assert!(matches!(
            driver.ask(|driver| driver.count()),
            Err(DriverError::TimedOut { after: Millis(50) })
        ));
        // Further questions do not pile up behind the one that is stuck.
        assert_eq!(driver.ask(|driver| driver.count()), Err(DriverError::Hung));
        assert!(began.elapsed() < Duration::from_secs(5));
        drop(release);
        let deadline = Instant::now() + Duration::from_secs(5);
        while driver.ask(|driver| driver.count()) != Ok(1) {
            assert!(Instant::now() < deadline, "the driver came back and was not noticed");
        }
    }

    #[test]
    fn several_owners_take_turns() {
        let scripted = Scripted::with_gpus(3);
        let driver = Guarded::new(scripted.connect(), Duration::from_secs(10));
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for _ in 0..50 {
                        assert_eq!(driver.ask(|driver| driver.count()), Ok(3));
                    }
                });
            }
        });
    }

    #[test]
    fn a_reloaded_driver_is_connected_to_again() {
        let scripted = Scripted::with_gpus(2);
        let driver = Guarded::new(scripted.connect(), Duration::from_secs(5));
        assert_eq!(driver.ask(|driver| driver.count()), Ok(2));
        scripted.unload();
        assert_eq!(driver.ask(|driver| driver.count()), Err(DriverError::NotLoaded));
        assert_eq!(driver.ask(|driver| driver.count()), Err(DriverError::NotLoaded));
        scripted.load();
        assert_eq!(driver.ask(|driver| driver.count()), Ok(2));
        assert_eq!(scripted.connections(), 2);
    }
}
