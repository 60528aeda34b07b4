/** Return the part of the route behind the page's name, decoded if possible: "x y" for "/schema/x%20y". */
export function secondPart(pathname: string): string {
  const part = pathname.split("/")[2] ?? "";
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
