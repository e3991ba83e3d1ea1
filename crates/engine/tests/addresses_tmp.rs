mod addresses_world;
use addresses_world::*;
use sluice_engine::addresses::Limits;
#[test]
fn tmp() {
    let mut w = World::new(Limits::default(), &["a"]);
    w.azure.insert((ip("10.0.0.1"), ip("10.1.0.1")), ["stranger".to_string()].into());
    println!("{}", w.list(true));
    println!("{:?} {:?}", w.addresses, w.addresses.wake_at());
    println!("{:?}", w.addresses.next_batch(w.now));
}
