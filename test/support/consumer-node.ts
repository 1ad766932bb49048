/** The Node that runs the packed tarball: `CARILLON_TEST_NODE`, which scripts/test-long.sh sets, else our own. */
export function consumerNode(): string {
  return process.env.CARILLON_TEST_NODE ?? process.execPath;
}
