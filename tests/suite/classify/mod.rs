//! Each class and each refusal, from the small world with one thing changed.

mod ask;
mod declared;
mod kind;
mod long_names;
mod lvm_on_pvc;
mod on_pvc;
mod plan_on_pvc;
mod refused;
mod rotation;
