//! Caps that a framework keeps by itself when its environment says so.

use coloc_model::{Bytes, Framework};

/// What can be done by environment.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Cap {
    /// These variables cap the framework's own allocator.
    Environment {
        /// The variables.
        variables: Vec<(&'static str, String)>,
        /// What the cap leaves out.
        note: &'static str,
    },
    /// No variable caps it. These make it behave, and the script can do the rest.
    Unable {
        /// Variables that help without capping.
        variables: Vec<(&'static str, String)>,
        /// What the script would have to do.
        instead: &'static str,
    },
}

impl Cap {
    /// The variables, whether they cap or only help.
    pub fn variables(self) -> Vec<(&'static str, String)> {
        match self {
            Cap::Environment { variables, .. } | Cap::Unable { variables, .. } => variables,
        }
    }
}

/// The memory fraction for scripts that want to keep to it themselves.
const FRACTION: &str = "COLOC_GPU_MEMORY_FRACTION";

/// The cap of a framework at `limit` for a task with so many processes on a device with `device` memory.
pub fn cap(framework: Framework, limit: Bytes, device: Bytes, processes: u32) -> Cap {
    let each = limit.0 as f64 / f64::from(processes.max(1));
    // Rounded down: a cap that is a little low is kept, one that is a little high is not.
    let share = (each / device.0.max(1) as f64).clamp(0.0, 1.0);
    let fraction = format!("{:.4}", (share * 10_000.0).floor() / 10_000.0);
    let hint = (FRACTION, fraction.clone());
    match framework {
        Framework::Jax => Cap::Environment {
            variables: vec![
                ("XLA_PYTHON_CLIENT_MEM_FRACTION", fraction),
                ("XLA_PYTHON_CLIENT_PREALLOCATE", "false".to_owned()),
                hint,
            ],
            note: "the CUDA context and libraries come on top",
        },
        // PYTORCH_CUDA_ALLOC_CONF has no option that caps memory.
        Framework::PyTorch => Cap::Unable {
            variables: vec![hint],
            instead: "torch.cuda.set_per_process_memory_fraction(float(os.environ[\"COLOC_GPU_MEMORY_FRACTION\"]))",
        },
        Framework::TensorFlow => Cap::Unable {
            variables: vec![("TF_FORCE_GPU_ALLOW_GROWTH", "true".to_owned()), hint],
            instead: "tf.config.set_logical_device_configuration with a memory_limit",
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jax_is_capped_by_environment_and_pytorch_is_not() {
        let (limit, device) = (Bytes::from_mib(8192), Bytes::from_mib(40_960));
        let Cap::Environment { variables, .. } = cap(Framework::Jax, limit, device, 2) else {
            panic!("JAX can be capped");
        };
        assert_eq!(variables[0], ("XLA_PYTHON_CLIENT_MEM_FRACTION", "0.1000".to_owned()));
        let Cap::Unable { variables, instead } = cap(Framework::PyTorch, limit, device, 1) else {
            panic!("PyTorch cannot be capped by environment");
        };
        assert_eq!(variables, [("COLOC_GPU_MEMORY_FRACTION", "0.2000".to_owned())]);
        assert!(instead.contains("set_per_process_memory_fraction"));
    }

    #[test]
    fn fractions_stay_fractions() {
        for (limit, device) in [(u64::MAX, 1), (0, 0), (1, u64::MAX)] {
            let Cap::Environment { variables, .. } =
                cap(Framework::Jax, Bytes(limit), Bytes(device), 0)
            else {
                panic!("JAX can be capped");
            };
            let fraction: f64 = variables[0].1.parse().expect("a number");
            assert!((0.0..=1.0).contains(&fraction));
        }
    }
}
