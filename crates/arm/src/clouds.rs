//! The clouds of Azure: where their resource managers are, and who issues tokens for them.

/// One of Azure's clouds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Cloud {
    /// The one that everybody means.
    #[default]
    Public,
    /// Run by 21Vianet in China.
    China,
    /// For the government of the United States.
    UsGovernment,
}

impl Cloud {
    /// Every cloud, for tables and tests.
    pub const ALL: [Cloud; 3] = [Cloud::Public, Cloud::China, Cloud::UsGovernment];

    /// The cloud of this name, as `azure.json` spells it; case does not matter.
    pub fn from_name(name: &str) -> Option<Cloud> {
        Cloud::ALL.into_iter().find(|cloud| cloud.name().eq_ignore_ascii_case(name))
    }

    /// The name that `azure.json` uses.
    pub const fn name(self) -> &'static str {
        match self {
            Cloud::Public => "AzurePublicCloud",
            Cloud::China => "AzureChinaCloud",
            Cloud::UsGovernment => "AzureUSGovernmentCloud",
        }
    }

    /// The resource manager.
    pub const fn resource_manager(self) -> &'static str {
        match self {
            Cloud::Public => "https://management.azure.com",
            Cloud::China => "https://management.chinacloudapi.cn",
            Cloud::UsGovernment => "https://management.usgovcloudapi.net",
        }
    }

    /// Who issues tokens.
    pub const fn authority(self) -> &'static str {
        match self {
            Cloud::Public => "https://login.microsoftonline.com",
            Cloud::China => "https://login.chinacloudapi.cn",
            Cloud::UsGovernment => "https://login.microsoftonline.us",
        }
    }

    /// What a token must be for.
    pub fn scope(self) -> String {
        format!("{}/.default", self.resource_manager())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cloud_is_found_by_the_name_it_prints() {
        for cloud in Cloud::ALL {
            assert_eq!(Cloud::from_name(cloud.name()), Some(cloud));
            assert_eq!(Cloud::from_name(&cloud.name().to_lowercase()), Some(cloud));
        }
        assert_eq!(Cloud::from_name("AzureGermanCloud"), None);
    }
}
