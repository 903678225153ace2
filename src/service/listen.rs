//! Running the service on its addresses, until it is asked to stop or a listener fails.

use std::{future::Future, net::SocketAddr};

use tokio_util::sync::CancellationToken;

use crate::{Service, ServiceError, Tls, listener};

/// Addresses that a service is bound to, with the ports that the system chose where 0 was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BoundAddresses {
    /// Of the base address.
    pub address: SocketAddr,
    /// Of the older base address, where it is served.
    pub legacy: Option<SocketAddr>,
}

/// Where a service listens, and how.
#[derive(Clone, Debug)]
pub struct Listening {
    /// Of the base address.
    pub address: SocketAddr,
    /// Of the older base address; none for none.
    pub legacy: Option<SocketAddr>,
    /// Both by https alone.
    pub tls: Option<Tls>,
}

/// Binds the service's addresses, tells `bound` which they are, and serves until `stop` resolves.
/// Fails where an address cannot be bound, or a listener fails.
pub async fn listen(
    service: &Service,
    listening: Listening,
    bound: impl FnOnce(BoundAddresses),
    stop: impl Future<Output = ()>,
) -> Result<(), ServiceError> {
    let Listening { address, legacy, tls } = listening;
    let bind = |address: SocketAddr| {
        let listener = listener::bind(address).map_err(|source| ServiceError::Listen { address, source })?;
        let address = listener.local_addr().map_err(|source| ServiceError::Listen { address, source })?;
        Ok::<_, ServiceError>((listener, address))
    };
    let (main, address) = bind(address)?;
    let older = match legacy {
        Some(legacy) => Some(bind(legacy)?),
        None => None,
    };
    bound(BoundAddresses { address, legacy: older.as_ref().map(|(_, address)| *address) });
    let stopping = CancellationToken::new();
    // Either server's failure stops the other: half a service is not what was asked for.
    let run = async |listener, router| {
        let result = listener::serve_tls(listener, router, tls.clone(), stopping.clone().cancelled_owned()).await;
        stopping.cancel();
        result.map_err(ServiceError::Serve)
    };
    let older = async {
        match older {
            Some((listener, _)) => run(listener, service.legacy_router()).await,
            None => Ok(()),
        }
    };
    let servers = async { tokio::join!(run(main, service.router()), older) };
    let mut servers = std::pin::pin!(servers);
    let (main, older) = tokio::select! {
        results = &mut servers => results,
        () = stop => {
            stopping.cancel();
            servers.await
        }
    };
    main.and(older)
}
