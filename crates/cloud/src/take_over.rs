//! Makes a cloud look like one that was listed, so that what would come of it can be tried on the model.
//!
//! What was listed goes in as it is: nothing is checked, nothing runs, nobody pays. What a listing does not
//! show (other gateways, other groups, quotas, locks) is not there.

use alloc::sync::Arc;

use sluice_model::effect::Listing;
use sluice_model::names::Scope;

use crate::cloud::Cloud;
use crate::place::group_of;

impl Cloud {
    /// Takes over what one complete listing of this scope showed. The gateway comes before what it holds.
    pub fn take_over(&mut self, scope: &Scope, listing: &Listing) {
        let gateway_id = scope.gateway_id();
        match listing {
            Listing::Foundation { gateway, subnet } => {
                let groups = [group_of(&gateway_id), group_of(&scope.subnet_id())];
                self.state.groups.extend(groups.into_iter().flatten());
                if let Some(subnet) = subnet {
                    let etag = self.counter.etag();
                    self.state.write_network(&scope.virtual_network_id(), Some(etag));
                    self.state.write(&subnet.id, Some(subnet.clone()));
                }
                if let Some(gateway) = gateway {
                    self.state.write(&gateway_id, Some(gateway.clone()));
                    self.state.contents.entry(gateway_id).or_default();
                }
            }
            Listing::Registrations(all) => {
                for registration in all {
                    let name = Arc::clone(&registration.name);
                    self.state.register(&gateway_id, &name, Some(registration.clone()));
                }
            }
            Listing::Locations(all) => {
                let Some(contents) = self.state.contents.get_mut(&gateway_id) else { return };
                for location in all {
                    for entry in &location.addresses {
                        contents.bind(location.location, entry.address, entry.services.iter());
                    }
                }
            }
            Listing::LoadBalancers(all) => {
                for it in all {
                    self.state.write(&it.meta.id, Some(it.clone()));
                }
            }
            Listing::NatGateways(all) => {
                for it in all {
                    self.state.write(&it.meta.id, Some(it.clone()));
                }
            }
            Listing::PublicIps(all) => {
                for it in all {
                    self.addresses.keep(it.address);
                    self.state.write(&it.meta.id, Some(it.clone()));
                }
            }
        }
    }
}
