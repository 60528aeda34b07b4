import type { PageRoute } from "../../app/routes";

const route: PageRoute = {
  path: "/charts",
  title: "Charts",
  group: "Traffic",
  order: 40,
  load: () => import("./Charts"),
};

export default route;
