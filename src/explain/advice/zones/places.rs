//! Names that people write for zones, and that the database does not have: countries in which nearly all places have one
//! zone, large cities, the names of Windows, and abbreviations. The zones are those of `zone.tab` of the IANA database,
//! and of the mapping of Windows zones in Unicode's CLDR.

/// Names in lower case, separated by commas, with their zone.
pub(in crate::explain::advice) const PLACES: [(&str, &str); 45] = [
    (
        "china, beijing, peking, shenzhen, guangzhou, hangzhou, china standard time",
        "Asia/Shanghai",
    ),
    (
        "india, mumbai, delhi, new delhi, bangalore, bengaluru, chennai, hyderabad, pune, india standard time",
        "Asia/Kolkata",
    ),
    (
        "germany, munich, hamburg, frankfurt, cologne, stuttgart, w. europe standard time",
        "Europe/Berlin",
    ),
    (
        "france, lyon, marseille, toulouse, romance standard time",
        "Europe/Paris",
    ),
    (
        "england, uk, united kingdom, britain, great britain, scotland, wales, gmt standard time",
        "Europe/London",
    ),
    ("ireland", "Europe/Dublin"),
    ("spain, barcelona, valencia, seville", "Europe/Madrid"),
    ("italy, milan, naples, turin, florence, venice", "Europe/Rome"),
    ("netherlands, holland, the hague, rotterdam", "Europe/Amsterdam"),
    ("belgium, antwerp", "Europe/Brussels"),
    ("switzerland, geneva, basel, bern", "Europe/Zurich"),
    ("austria, graz, salzburg", "Europe/Vienna"),
    ("sweden, gothenburg", "Europe/Stockholm"),
    ("norway, bergen", "Europe/Oslo"),
    ("denmark, aarhus", "Europe/Copenhagen"),
    ("finland", "Europe/Helsinki"),
    ("czechia, czech republic, brno", "Europe/Prague"),
    ("hungary", "Europe/Budapest"),
    ("romania", "Europe/Bucharest"),
    ("bulgaria", "Europe/Sofia"),
    ("greece", "Europe/Athens"),
    ("ukraine, kyjiv", "Europe/Kyiv"),
    ("krakow, warszawa", "Europe/Warsaw"),
    (
        "st petersburg, saint petersburg, russian standard time",
        "Europe/Moscow",
    ),
    ("south korea, korea, busan, korea standard time", "Asia/Seoul"),
    ("osaka, kyoto, tokyo standard time", "Asia/Tokyo"),
    ("taiwan", "Asia/Taipei"),
    ("thailand", "Asia/Bangkok"),
    ("vietnam, hanoi", "Asia/Ho_Chi_Minh"),
    ("philippines", "Asia/Manila"),
    ("malaysia", "Asia/Kuala_Lumpur"),
    ("singapore standard time", "Asia/Singapore"),
    ("pakistan, islamabad, lahore", "Asia/Karachi"),
    ("bangladesh", "Asia/Dhaka"),
    ("nepal", "Asia/Kathmandu"),
    ("uae, united arab emirates, abu dhabi", "Asia/Dubai"),
    ("saudi arabia, jeddah, mecca", "Asia/Riyadh"),
    ("nigeria, abuja", "Africa/Lagos"),
    ("kenya", "Africa/Nairobi"),
    ("south africa, cape town, durban", "Africa/Johannesburg"),
    (
        "boston, miami, atlanta, philadelphia, eastern time, us eastern, eastern standard time",
        "America/New_York",
    ),
    (
        "houston, dallas, austin, central time, us central, central standard time",
        "America/Chicago",
    ),
    ("mountain time, us mountain, mountain standard time", "America/Denver"),
    (
        "san francisco, seattle, san diego, las vegas, pacific time, us pacific, pacific standard time",
        "America/Los_Angeles",
    ),
    ("rio, rio de janeiro, brasilia", "America/Sao_Paulo"),
];

/// Abbreviations of the times of a year, with a place that has them. Some stand for several zones.
pub(super) const ABBREVIATIONS: [(&str, &str); 13] = [
    ("pst, pdt, pt", "America/Los_Angeles"),
    ("mdt, mt", "America/Denver"),
    ("cdt, ct", "America/Chicago"),
    ("cst", "America/Chicago or Asia/Shanghai"),
    ("edt, et", "America/New_York"),
    ("bst", "Europe/London"),
    ("cest", "Europe/Berlin"),
    ("eest", "Europe/Athens"),
    ("msk", "Europe/Moscow"),
    ("ist", "Asia/Kolkata, Asia/Jerusalem or Europe/Dublin"),
    ("jst", "Asia/Tokyo"),
    ("kst", "Asia/Seoul"),
    ("aest, aedt", "Australia/Sydney"),
];
