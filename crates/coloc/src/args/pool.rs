//! A pool of GPUs, as it is described on the command line and in a configuration's `[[pool]]`.

use crate::parse::slurm::{self, Limit};
use coloc_api::request::GpuName;
use coloc_daemon::administration::{Pool, Who};
use coloc_model::Share;

/// The keys of a pool.
pub(crate) const KEYS: [&str; 6] = ["name", "gpus", "share", "default", "allow", "max-time"];

/// `name=shared;gpus=0-3;share=mps;allow=ann,@lab;max-time=2h;default=true`.
pub(crate) fn pool(text: &str) -> Result<Pool, String> {
    let mut pool = Pool {
        name: String::new(),
        gpus: None,
        share: None,
        default: false,
        allow: Vec::new(),
        max_time: None,
    };
    for part in text.split(';').map(str::trim).filter(|part| !part.is_empty()) {
        let (key, value) =
            part.split_once('=').ok_or_else(|| format!("{part:?}: expected KEY=VALUE"))?;
        set(&mut pool, key.trim(), value.trim())?;
    }
    match pool.name.is_empty() {
        true => Err("a pool needs a name".to_owned()),
        false => Ok(pool),
    }
}

fn set(pool: &mut Pool, key: &str, value: &str) -> Result<(), String> {
    match key {
        "name" => pool.name = value.to_owned(),
        "gpus" => pool.gpus = gpus(value)?,
        "share" => pool.share = Some(share(value)?),
        "default" => {
            pool.default =
                value.parse().map_err(|_| "default: expected true or false".to_owned())?;
        }
        "allow" => {
            let who = |name: &str| name.trim().parse::<Who>().map_err(|error| error.to_string());
            pool.allow = value.split(',').map(who).collect::<Result<_, _>>()?;
        }
        "max-time" | "max_time" => {
            let Limit(limit) = slurm::limit(value)?;
            pool.max_time = limit;
        }
        other => return Err(format!("unknown key {other:?}; a pool has {}", KEYS.join(", "))),
    }
    Ok(())
}

fn share(text: &str) -> Result<Share, String> {
    let known = [Share::Exclusive, Share::Streams, Share::Mps, Share::Mig];
    let found = known.into_iter().find(|share| share.name() == text);
    found.ok_or_else(|| format!("share {text:?}: expected exclusive, streams, mps or mig"))
}

/// `all`, or `0-3,5,GPU-…`.
fn gpus(text: &str) -> Result<Option<Vec<GpuName>>, String> {
    if text == "all" {
        return Ok(None);
    }
    let parts = text.split(',').map(|part| some_gpus(part.trim()).map(|SomeGpus(gpus)| gpus));
    let gpus: Vec<Vec<GpuName>> = parts.collect::<Result<_, _>>()?;
    Ok(Some(gpus.concat()))
}

/// What one word names: a GPU, or a range of them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct SomeGpus(pub(crate) Vec<GpuName>);

/// A number, a range such as 0-3, or a UUID.
pub(crate) fn some_gpus(part: &str) -> Result<SomeGpus, String> {
    let fail = || {
        format!(
            "{part:?} is no GPU: expected a number, a range such as 0-3 or a UUID, as `coloc gpus` lists them"
        )
    };
    let number = |text: &str| text.parse::<u32>().map_err(|_| fail());
    Ok(SomeGpus(match part.split_once('-') {
        _ if part.starts_with("GPU-") => vec![GpuName::Uuid(part.to_owned())],
        None => vec![GpuName::Index(number(part)?)],
        Some((first, last)) => {
            let (first, last) = (number(first)?, number(last)?);
            if first > last || last - first > 1024 {
                return Err(fail());
            }
            (first..=last).map(GpuName::Index).collect()
        }
    }))
}

/// All that some words name.
pub(crate) fn all_gpus(words: &[SomeGpus]) -> Vec<GpuName> {
    words.iter().flat_map(|SomeGpus(gpus)| gpus.clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pool_is_read_key_by_key() {
        let read =
            pool("name=a; gpus=0-1,5,GPU-x; share=mig; allow=ann,@lab; max-time=2h; default=true");
        let read = read.unwrap();
        let index = GpuName::Index;
        let gpus = vec![index(0), index(1), index(5), GpuName::Uuid("GPU-x".to_owned())];
        assert_eq!((read.gpus, read.share, read.default), (Some(gpus), Some(Share::Mig), true));
        assert_eq!(read.max_time.map(|time| time.secs()), Some(7200.0));
        assert_eq!(pool("name=a;gpus=all").unwrap().gpus, None);
        for wrong in [
            "",
            "gpus=0",
            "name=a;gpus=3-1",
            "name=a;share=fast",
            "name=a;colour=red",
            "name=a;default=1",
        ] {
            assert!(pool(wrong).is_err(), "{wrong}");
        }
    }
}
