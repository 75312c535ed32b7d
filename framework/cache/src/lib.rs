//! A local mirror of one kind of Kubernetes objects: reflector, delta FIFO, indexer, lister.
