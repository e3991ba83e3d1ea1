//! Work that is held back, and specs that are not supported.
//!
//! Only the first is a difference. A Service with an unsupported spec stays as it is until its owner corrects it. Work that
//! the mass-deletion guard, an unusable gateway, a park or an unmanaged resource holds back is still to be done.

use serde::Serialize;
use sluice_engine::{ServiceView, State, WaitsFor};
use sluice_model::reason::Reason;

use super::foresight::Forecast;

/// One service, and what is the matter with it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Case {
    /// Which.
    pub name: String,
    /// The fixed word; `sluice explain` has a page about most of them.
    pub reason: &'static str,
    /// A sentence.
    pub message: String,
}

/// Everything that is held back; the gateway first, if it is.
pub(super) fn held(forecast: &Forecast) -> Vec<Case> {
    let gateway = forecast.gateway_trouble.iter().map(|why| Case {
        name: "gateway".to_owned(),
        reason: Reason::GatewayUnavailable.word(),
        message: why.clone(),
    });
    let services = forecast.services.iter().filter_map(|(view, waits)| {
        let (reason, message) = holds(view, waits)?;
        Some(Case { name: name(view), reason, message })
    });
    gateway.chain(services).collect()
}

/// What holds one service; what passes by itself, as a linger time, does not.
fn holds(view: &ServiceView, waits: &[WaitsFor]) -> Option<(&'static str, String)> {
    if waits.contains(&WaitsFor::MassDeletionConsent) {
        let message =
            "held by the mass-deletion guard; if the deletion is intended, run `sluice allow-deletion`"
                .to_owned();
        return Some((Reason::MassDeletionHeld.word(), message));
    }
    if let Some(hold) = &view.hold {
        return Some((hold.reason.word(), hold.text.clone()));
    }
    match &view.invalid {
        Some((Reason::Conflict, why)) => return Some((Reason::Conflict.word(), why.clone())),
        Some(_) => return None,
        None => {}
    }
    if waits.contains(&WaitsFor::Gateway) && view.state != State::Created {
        let message = "waiting for the service gateway".to_owned();
        return Some((Reason::GatewayUnavailable.word(), message));
    }
    if waits.contains(&WaitsFor::ConfirmedAbsence) {
        let message = "not deleted before Kubernetes confirms that the Service is deleted".to_owned();
        return Some(("Unclear", message));
    }
    None
}

/// Everything that asks for what cannot be, wholly or in part.
pub(super) fn not_served(forecast: &Forecast) -> Vec<Case> {
    let case = |(view, waits): &(ServiceView, Vec<WaitsFor>)| {
        let (reason, message) = match &view.invalid {
            Some((Reason::Conflict, _)) => return None,
            Some((reason, message)) => (*reason, message.clone()),
            None => (Reason::PortUnresolved, waits.iter().find_map(spec_change)?),
        };
        Some(Case { name: name(view), reason: reason.word(), message })
    };
    forecast.services.iter().filter_map(case).collect()
}

fn spec_change(wait: &WaitsFor) -> Option<String> {
    match wait {
        WaitsFor::SpecChange(why) => Some(why.clone()),
        _ => None,
    }
}

fn name(view: &ServiceView) -> String {
    match &view.object {
        Some(object) => format!("service/{object}"),
        None => view.key.to_string(),
    }
}
