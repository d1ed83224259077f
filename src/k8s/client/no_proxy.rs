//! Servers that are reached without the proxy of HTTPS_PROXY, by NO_PROXY. Pure.
//!
//! kube reads HTTPS_PROXY, and NO_PROXY only if it is compiled with support for proxies.

use std::net::IpAddr;

use http::Uri;

/// Returns whether NO_PROXY exempts this server, as for kubectl (golang.org/x/net/http/httpproxy,
/// `useProxy`).
///
/// `*` exempts all, `example.com` the domain and those below it, `.example.com` and `*.example.com` those
/// below it. Addresses and CIDR blocks exempt addresses. Each entry may have a port, except a CIDR block. The
/// own computer never needs a proxy.
pub(super) fn is_exempt(server: &Uri, no_proxy: &str) -> bool {
    let Some(host) = server.host() else { return false };
    let host = bare(host).trim_end_matches('.').to_lowercase();
    let ip = host.parse::<IpAddr>().ok();
    if host == "localhost" || ip.is_some_and(|ip| ip.is_loopback()) {
        return true;
    }
    let port = server.port_u16().unwrap_or(443);
    let entries = no_proxy.split(',').map(|entry| entry.trim().to_lowercase());
    entries.filter(|entry| !entry.is_empty()).any(|entry| {
        if entry == "*" {
            return true;
        }
        if let (Some((network, bits)), Some(ip)) = (entry.split_once('/'), ip) {
            return contains(network, bits, ip).unwrap_or(false);
        }
        let (name, of_port) = with_port(&entry);
        if of_port.is_some_and(|of_port| of_port != port) {
            return false;
        }
        match (name.parse::<IpAddr>(), ip) {
            (Ok(exempt), Some(ip)) => exempt == ip,
            (Ok(_), None) | (Err(_), Some(_)) => false,
            (Err(_), None) => is_of_domain(&host, name),
        }
    })
}

/// Returns an IPv6 address without its brackets.
fn bare(host: &str) -> &str {
    host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host)
}

/// Separates the port of an entry.
///
/// An IPv6 address has a port only if it is in brackets.
fn with_port(entry: &str) -> (&str, Option<u16>) {
    if entry.parse::<IpAddr>().is_ok() {
        return (entry, None);
    }
    let parted = entry.rsplit_once(':').and_then(|(name, port)| Some((name, port.parse().ok()?)));
    parted.map_or((bare(entry), None), |(name, port)| (bare(name), Some(port)))
}

fn is_of_domain(host: &str, name: &str) -> bool {
    let name = name.strip_prefix('*').unwrap_or(name);
    let (below, itself) = match name.strip_prefix('.') {
        Some(below) => (below, false),
        None => (name, true),
    };
    (itself && host == below) || host.strip_suffix(below).is_some_and(|left| left.ends_with('.'))
}

/// Returns whether a CIDR block contains the address; `None` if the block is malformed.
fn contains(network: &str, bits: &str, ip: IpAddr) -> Option<bool> {
    let bits: u32 = bits.parse().ok()?;
    // Shifting out all bits of a number is an overflow: of a block with 0 bits, everything is a member.
    Some(match (network.parse().ok()?, ip) {
        (IpAddr::V4(network), IpAddr::V4(ip)) => {
            let shift = 32_u32.checked_sub(bits)?;
            let part = |ip: std::net::Ipv4Addr| ip.to_bits().checked_shr(shift);
            part(network) == part(ip)
        }
        (IpAddr::V6(network), IpAddr::V6(ip)) => {
            let shift = 128_u32.checked_sub(bits)?;
            let part = |ip: std::net::Ipv6Addr| ip.to_bits().checked_shr(shift);
            part(network) == part(ip)
        }
        (IpAddr::V4(_), IpAddr::V6(_)) | (IpAddr::V6(_), IpAddr::V4(_)) => false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exempt(server: &str, no_proxy: &str) -> bool {
        is_exempt(&server.parse().unwrap(), no_proxy)
    }

    #[test]
    fn no_proxy_exempts_domains_addresses_and_blocks() {
        let name = "https://api.lab.example:6443/k8s";
        for of_name in
            ["*", "api.lab.example", "lab.example", ".lab.example", "*.lab.example", "a, LAB.example:6443"]
        {
            assert!(exempt(name, of_name), "{of_name}");
        }
        for other in ["", ",", ".api.lab.example", "ab.example", "lab.example:443", "10.0.0.0/8", "lab"] {
            assert!(!exempt(name, other), "{other}");
        }
        let v4 = "https://10.1.2.3:6443";
        for of_address in ["10.1.2.3", "10.1.2.3:6443", "10.0.0.0/8", "10.1.2.3/32", "0.0.0.0/0"] {
            assert!(exempt(v4, of_address), "{of_address}");
        }
        for other in ["10.1.2.4", "10.1.2.3:443", "10.2.0.0/16", "10.0.0.0/33", "fd00::/8", "::/0", "2.3"] {
            assert!(!exempt(v4, other), "{other}");
        }
        let v6 = "https://[fd00::1]:6443";
        for of_address in ["fd00::1", "[fd00::1]", "[fd00::1]:6443", "fd00::/8", "::/0"] {
            assert!(exempt(v6, of_address), "{of_address}");
        }
        for other in ["fd00::2", "[fd00::1]:443", "fe00::/8", "0.0.0.0/0", "fd00::/129"] {
            assert!(!exempt(v6, other), "{other}");
        }
    }

    #[test]
    fn own_computer_needs_no_proxy() {
        for server in ["https://localhost:6443", "https://127.0.0.1:6443", "https://[::1]:6443"] {
            assert!(exempt(server, ""), "{server}");
        }
    }
}
