/** Where etcd is, and how to speak with it; checked by whoever reads it from a user. */
export interface EtcdConnection {
  /** The client URLs of the members, at least one, all of them http or all https. */
  readonly hosts: readonly string[];
  /** Paths of PEM files, or PEM texts. */
  readonly tls?: { readonly ca?: string; readonly cert?: string; readonly key?: string } | undefined;
  readonly username?: string | undefined;
  readonly password?: string | undefined;
  /** The longest wait for one answer of one member, ms. */
  readonly callTimeout: number;
}
