//! Forums and what is said in them: walls and albums of persons, groups; posts, comments, likes. Written as they are made: one forum at a time is
//! in memory.

use std::fmt::Write;
use std::io;
use std::path::Path;

use super::friends::Friends;
use super::people::People;
use super::random::Random;
use super::table::Table;
use super::words::{ANSWERS, COMMON, COUNTRIES};
use super::world::World;
use super::{Kind, Period, id};

/// Posts on a wall for each friend, and in a group for each member.
const WALL_POSTS: f64 = 0.54;
const GROUP_POSTS: f64 = 0.6;

/// Albums of a person and photos of an album, at most; and of friends, how many may see an album at most.
const ALBUMS_MAX: usize = 16;
const PHOTOS_MAX: usize = 20;
const ALBUM_MEMBERS: f64 = 0.84;

/// Of persons, how many lead a group; its members at most.
const GROUPS: f64 = 0.0945;
const GROUP_MEMBERS_MAX: usize = 50;

/// Comments under a post at most.
const COMMENTS_MAX: usize = 20;

/// Of comments, how many answer the post though there are others to answer, and how many are a word or two.
const TO_POST: f64 = 0.45;
const SHORT: f64 = 0.66;

/// Tags of a post, and of a comment that is more than a word or two, beside the first; fewer if there are not as many.
const POST_TAGS: f64 = 4.2;
const COMMENT_TAGS: f64 = 4.0;

/// Likes of a message for members^[`LIKES_GROWTH`].
const LIKES_GROWTH: f64 = 0.4;
const PHOTO_LIKES: f64 = 0.2;
const POST_LIKES: f64 = 0.32;
const COMMENT_LIKES: f64 = 0.125;

/// A comment comes within this time.
const ANSWER_MS: u64 = 3 * 86_400_000;

/// A forum exists, and somebody belongs to it, so long after the reason for it.
const SETUP_MS: u64 = 10_000;

/// A person who may write in a forum, from this moment on.
type Member = (u32, u64);

/// Writes forums and messages.
pub struct Forums<'a> {
    world: &'a World,
    people: &'a People,
    friends: &'a Friends,
    seed: u64,
    period: Period,
    forums: Table,
    members: Table,
    forum_tags: Table,
    posts: Table,
    post_tags: Table,
    comments: Table,
    comment_tags: Table,
    post_likes: Table,
    comment_likes: Table,
    next_forum: u64,
    next_message: u64,
    text: String,
}

/// A forum under way.
struct Forum<'a> {
    id: u64,
    owner: usize,
    members: &'a [Member],
    tags: &'a [u16],
}

impl<'a> Forums<'a> {
    /// Begins the files.
    pub fn create(
        folder: &Path,
        world: &'a World,
        people: &'a People,
        friends: &'a Friends,
        seed: u64,
        period: Period,
    ) -> io::Result<Forums<'a>> {
        let table = |name, header: &str| Table::create(folder, name, header);
        let of_post = "id|imageFile|creationDate|locationIP|browserUsed|language|content|length|creator|Forum.id|place";
        let of_comment =
            "id|creationDate|locationIP|browserUsed|content|length|creator|place|replyOfPost|replyOfComment";
        Ok(Forums {
            world,
            people,
            friends,
            seed,
            period,
            forums: table("forum", "id|title|creationDate|moderator")?,
            members: table("forum_hasMember_person", "Forum.id|Person.id|joinDate")?,
            forum_tags: table("forum_hasTag_tag", "Forum.id|Tag.id")?,
            posts: table("post", of_post)?,
            post_tags: table("post_hasTag_tag", "Post.id|Tag.id")?,
            comments: table("comment", of_comment)?,
            comment_tags: table("comment_hasTag_tag", "Comment.id|Tag.id")?,
            post_likes: table("person_likes_post", "Person.id|Post.id|creationDate")?,
            comment_likes: table("person_likes_comment", "Person.id|Comment.id|creationDate")?,
            next_forum: 0,
            next_message: 0,
            text: String::new(),
        })
    }

    /// Writes the forums of one person.
    pub fn write(&mut self, owner: usize) -> io::Result<()> {
        let random = &Kind::Forum.random(self.seed, owner);
        let (people, friends) = (self.people, self.friends);
        let person = &people.all[owner];
        let (first, last) = person.name;
        let begin = (person.created + SETUP_MS).min(self.period.end - 1);
        let end = self.period.end;
        let joined = |friend: &Member, begin: u64| (friend.0, (friend.1 + SETUP_MS).clamp(begin, end - 1));

        let members: Vec<Member> = friends.of(owner).iter().map(|friend| joined(friend, begin)).collect();
        let title = format!("Wall of {first} {last}");
        let wall = self.begin_forum(&title, begin, owner, &members, people.tags(owner))?;
        for _ in 0..random.rounded(WALL_POSTS * members.len() as f64 * (0.5 + random.unit())).min(4 * members.len()) {
            self.post(&wall, begin, random)?;
        }

        for album in 0..random.below(ALBUMS_MAX + 1) {
            let begin = random.between(begin, end);
            let share = ALBUM_MEMBERS * random.unit();
            let seen: Vec<Member> =
                friends.of(owner).iter().filter(|_| random.chance(share)).map(|friend| joined(friend, begin)).collect();
            let tag = [random.pick(people.tags(owner))];
            let forum = self.begin_forum(&format!("Album {album} of {first} {last}"), begin, owner, &seen, &tag)?;
            for photo in 0..random.below(PHOTOS_MAX + 1) as u64 {
                self.photo(&forum, (begin + 1000 * (1 + photo)).min(end - 1), random)?;
            }
        }

        if random.chance(GROUPS) {
            let begin = random.between(begin, end);
            let mut members: Vec<Member> = Vec::new();
            for _ in 0..random.below(GROUP_MEMBERS_MAX) {
                // Friends, their friends, and strangers.
                let known = friends.of(owner);
                let other = match random.below(10) {
                    0..5 if !known.is_empty() => random.pick(known).0,
                    5..9 if !known.is_empty() => random.pick(friends.of(random.pick(known).0 as usize)).0,
                    _ => random.below(people.all.len()) as u32,
                };
                if other as usize != owner && !members.iter().any(|(member, _)| *member == other) {
                    let from = begin.max(people.all[other as usize].created).min(end - 1);
                    members.push((other, random.between(from, end)));
                }
            }
            let tag = [random.pick(people.tags(owner))];
            let place = COUNTRIES[person.country].0;
            let title = format!("Group for {} in {place}", self.world.tag_name(tag[0].into()));
            let group = self.begin_forum(&title, begin, owner, &members, &tag)?;
            for _ in 0..random.rounded(GROUP_POSTS * members.len() as f64 * (0.5 + random.unit())) {
                self.post(&group, begin, random)?;
            }
        }
        Ok(())
    }

    fn begin_forum<'b>(
        &mut self,
        title: &str,
        begin: u64,
        owner: usize,
        members: &'b [Member],
        tags: &'b [u16],
    ) -> io::Result<Forum<'b>> {
        let id = id(begin, self.period, self.next_forum, 36);
        self.next_forum += 1;
        self.forums.row(format_args!("{id}|{title}|{begin}|{}", self.people.all[owner].id))?;
        for (member, joined) in members {
            self.members.row(format_args!("{id}|{}|{joined}", self.people.all[*member as usize].id))?;
        }
        for tag in tags {
            self.forum_tags.row(format_args!("{id}|{tag}"))?;
        }
        Ok(Forum { id, owner, members, tags })
    }

    fn message_id(&mut self, moment: u64) -> u64 {
        self.next_message += 1;
        id(moment, self.period, self.next_message - 1, 36)
    }

    /// Where somebody writes from: nearly always at home.
    fn place(&self, person: usize, random: &Random) -> usize {
        if random.chance(0.95) { self.people.all[person].country } else { self.world.country(random) }
    }

    fn photo(&mut self, album: &Forum<'_>, moment: u64, random: &Random) -> io::Result<()> {
        let id = self.message_id(moment);
        let owner = &self.people.all[album.owner];
        let (address, place) = (self.people.address(album.owner), self.place(album.owner, random));
        self.posts.row(format_args!(
            "{id}|photo{id}.jpg|{moment}|{address}|{}|||0|{}|{}|{place}",
            owner.browser, owner.id, album.id
        ))?;
        self.like(id, moment, album.members, PHOTO_LIKES, true, random)
    }

    /// A post and the comments under it.
    fn post(&mut self, forum: &Forum<'_>, begin: u64, random: &Random) -> io::Result<()> {
        let own = (forum.owner as u32, begin);
        let author = if random.chance(0.5) {
            own
        } else {
            *forum.members.get(random.below(forum.members.len())).unwrap_or(&own)
        };
        let moment = random.between(author.1, self.period.end);
        let id = self.message_id(moment);
        // Some of what the forum is about.
        let count = 1 + random.exponential(POST_TAGS) as usize;
        let from = random.below(forum.tags.len());
        let tags: Vec<u16> = forum.tags.iter().cycle().skip(from).take(count.min(forum.tags.len())).copied().collect();
        self.say(&tags, 70 + random.below(93), random);
        let person = &self.people.all[author.0 as usize];
        let (address, place) = (self.people.address(author.0 as usize), self.place(author.0 as usize, random));
        let language = COUNTRIES[person.country].3.split(';').next().unwrap_or("en");
        self.posts.row(format_args!(
            "{id}||{moment}|{address}|{}|{language}|{}|{}|{}|{}|{place}",
            person.browser,
            self.text,
            self.text.len(),
            person.id,
            forum.id
        ))?;
        for tag in &tags {
            self.post_tags.row(format_args!("{id}|{tag}"))?;
        }
        self.like(id, moment, forum.members, POST_LIKES, true, random)?;
        self.discuss(forum, (id, moment), &tags, random)
    }

    /// The comments under a post: a tree.
    fn discuss(&mut self, forum: &Forum<'_>, post: (u64, u64), tags: &[u16], random: &Random) -> io::Result<()> {
        if forum.members.is_empty() {
            return Ok(());
        }
        // Id, moment and depth.
        let mut made: Vec<(u64, u64, u32)> = Vec::new();
        for _ in 0..random.below(COMMENTS_MAX + 1) {
            // Of two comments the one that is nearer to the post is rather answered.
            let comment = (!made.is_empty() && !random.chance(TO_POST)).then(|| {
                let (one, other) = (random.pick(&made), random.pick(&made));
                if one.2 <= other.2 || random.chance(0.4) { one } else { other }
            });
            let (parent, after, depth) = comment.unwrap_or((post.0, post.1, 0));
            let (author, joined) = random.pick(forum.members);
            let from = after.max(joined).min(self.period.end - 1);
            let moment = random.between(from, (from + ANSWER_MS).min(self.period.end));
            let id = self.message_id(moment);
            let mut own: Vec<u16> = Vec::new();
            if random.chance(SHORT) {
                self.text.clear();
                self.text += random.pick(ANSWERS);
            } else {
                // What the post is about, and what is on the author's mind.
                own.push(random.pick(tags));
                let mind = self.people.tags(author as usize);
                let (from, count) = (random.below(mind.len()), random.exponential(COMMENT_TAGS) as usize);
                for tag in mind.iter().cycle().skip(from).take(count.min(mind.len())) {
                    if !own.contains(tag) {
                        own.push(*tag);
                    }
                }
                self.say(&own, 60 + random.below(51), random);
            }
            let person = &self.people.all[author as usize];
            let (address, place) = (self.people.address(author as usize), self.place(author as usize, random));
            let (browser, text, length) = (person.browser, &self.text, self.text.len());
            let (of_post, of_comment) = if comment.is_none() { (Some(parent), None) } else { (None, Some(parent)) };
            let (of_post, of_comment) = (optional(of_post), optional(of_comment));
            self.comments.row(format_args!(
                "{id}|{moment}|{address}|{browser}|{text}|{length}|{}|{place}|{of_post}|{of_comment}",
                person.id
            ))?;
            for tag in own {
                self.comment_tags.row(format_args!("{id}|{tag}"))?;
            }
            self.like(id, moment, forum.members, COMMENT_LIKES, false, random)?;
            made.push((id, moment, depth + 1));
        }
        Ok(())
    }

    /// Puts a text of this length about some tags into `text`.
    fn say(&mut self, tags: &[u16], length: usize, random: &Random) {
        self.text.clear();
        for tag in tags {
            let _ = write!(self.text, "About {}, ", self.world.tag_name(usize::from(*tag)));
            for _ in 0..3 {
                self.text += random.pick(COMMON);
                self.text.push(' ');
            }
        }
        while self.text.len() < length {
            self.text += random.pick(COMMON);
            self.text.push(' ');
        }
        // All letters are of one byte.
        self.text.truncate(length);
    }

    fn like(
        &mut self,
        id: u64,
        moment: u64,
        members: &[Member],
        factor: f64,
        is_post: bool,
        random: &Random,
    ) -> io::Result<()> {
        let mean = factor * (members.len() as f64).powf(LIKES_GROWTH);
        let count = random.exponential(mean).round() as usize;
        let from = random.below(members.len());
        for (member, joined) in members.iter().cycle().skip(from).take(count.min(members.len())) {
            let liked = random.between(moment.max(*joined), self.period.end);
            let table = if is_post { &mut self.post_likes } else { &mut self.comment_likes };
            table.row(format_args!("{}|{id}|{liked}", self.people.all[*member as usize].id))?;
        }
        Ok(())
    }

    /// Writes what is left; says names and rows of the files.
    pub fn finish(self) -> io::Result<Vec<(&'static str, u64)>> {
        let Forums {
            forums,
            members,
            forum_tags,
            posts,
            post_tags,
            comments,
            comment_tags,
            post_likes,
            comment_likes,
            ..
        } = self;
        [forums, members, forum_tags, posts, post_tags, comments, comment_tags, post_likes, comment_likes]
            .into_iter()
            .map(Table::finish)
            .collect()
    }
}

/// A field that may be empty.
fn optional(id: Option<u64>) -> String {
    id.map_or_else(String::new, |id| id.to_string())
}
