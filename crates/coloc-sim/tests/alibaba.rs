//! Alibaba's pods as tasks.

mod support;

use coloc_sim::trace::{Format, read};
use std::path::Path;

#[test]
fn parts_of_a_gpu_become_tasks_that_share() {
    let rows = "name,cpu_milli,num_gpu,gpu_milli,qos,creation_time,deletion_time,scheduled_time\n\
                whole,12000,1,1000,LS,0,100,10\n\
                part,6000,1,460,BE,5,105,5\n\
                no-gpu,6000,0,0,LS,6,100,6\n\
                never-ran,6000,1,1000,BE,7,100,\n";
    let trace = read(Path::new("pods"), rows.as_bytes(), Format::Alibaba).expect("valid rows");
    let [whole, part] = trace.tasks() else { panic!("two pods ran on a GPU") };
    assert_eq!((whole.exclusive, whole.duration.secs()), (true, 90.0));
    assert_eq!((part.exclusive, part.profile.activity.sm.get()), (false, 0.46));
    assert_eq!(trace.user(part), "BE");
}

#[test]
fn the_published_list_is_read_whole() {
    let Some(file) = support::shared("traces/alibaba/openb_pod_list_default.csv") else { return };
    let trace = support::read(&file, Format::Alibaba);
    let parts = trace.tasks().iter().filter(|task| !task.exclusive).count();
    assert!(trace.tasks().len() > 6000 && parts > 2000, "{} {parts}", trace.tasks().len());
}
