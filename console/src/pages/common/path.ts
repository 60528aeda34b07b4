/** Return what stands behind the page's name in its address, decoded; as it is where it cannot be decoded. */
export function secondPart(pathname: string): string {
  const part = pathname.split("/")[2] ?? "";
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
